//! Writing and taking of samples as CDR bytes.

use std::ptr::NonNull;
use std::sync::Arc;

use cyclors as c;

use super::plain::{Ending, RawInfo};
use super::{Entity, checked};
use crate::{Error, ReturnCode};

/// The destination of a writer's samples: the writer, and the type its bytes must have.
#[derive(Debug)]
pub(crate) struct Sink {
    writer: Arc<Entity>,
    sertype: NonNull<c::ddsi_sertype>,
}

// SAFETY: the library locks writers by itself, and a sertype does not change after creation.
unsafe impl Send for Sink {}
// SAFETY: as above.
unsafe impl Sync for Sink {}

impl Sink {
    pub(crate) fn new(writer: Arc<Entity>) -> Result<Self, Error> {
        let mut sertype = std::ptr::null();
        // SAFETY: the handle is validated by the call; what it stores is borrowed from the writer.
        let code = unsafe { c::dds_get_entity_sertype(writer.handle(), &mut sertype) };
        checked(|| "ask for the type of a writer".to_owned(), code)?;
        let Some(sertype) = NonNull::new(sertype.cast_mut()) else {
            return Err(Error::Config("a writer without a type".to_owned()));
        };
        Ok(Self { writer, sertype })
    }

    pub(crate) const fn writer(&self) -> &Arc<Entity> {
        &self.writer
    }

    /// Writes a sample, now or at the given time (nanoseconds since 1970). `None` when the bytes
    /// are not of the topic's type.
    #[inline]
    pub(crate) fn write(&self, cdr: &[u8], at: Option<i64>) -> Option<Result<(), ReturnCode>> {
        let data = self.serdata(cdr, c::ddsi_serdata_kind_SDK_DATA)?;
        let writer = self.writer.handle();
        // SAFETY: one reference of `data` is owned and handed over, whatever the result. The sample
        // is not shared before that, so its time may be set.
        let code = unsafe {
            match at {
                None => c::dds_writecdr(writer, data.as_ptr()),
                Some(nanos) => {
                    (*data.as_ptr()).timestamp.v = nanos;
                    (*data.as_ptr()).statusinfo = 0;
                    c::dds_forwardcdr(writer, data.as_ptr())
                }
            }
        };
        Some(outcome(code))
    }

    /// Ends an instance, by the CDR bytes of its key. `None` when they are no key of the topic's
    /// type.
    pub(crate) fn end(&self, key: &[u8], how: Ending, now: i64) -> Option<Result<(), ReturnCode>> {
        let data = self.serdata(key, c::ddsi_serdata_kind_SDK_KEY)?;
        // SAFETY: as in `write`.
        let code = unsafe {
            (*data.as_ptr()).timestamp.v = now;
            (*data.as_ptr()).statusinfo = match how {
                Ending::Dispose => c::DDSI_STATUSINFO_DISPOSE,
                Ending::Unregister => c::DDSI_STATUSINFO_UNREGISTER,
            };
            c::dds_forwardcdr(self.writer.handle(), data.as_ptr())
        };
        Some(outcome(code))
    }

    /// Makes a sample or a key of the topic's type, of which the caller owns one reference; `None`
    /// when the bytes are of another type.
    #[inline]
    fn serdata(&self, cdr: &[u8], kind: c::ddsi_serdata_kind) -> Option<NonNull<c::ddsi_serdata>> {
        if cdr.len() < crate::cdr::HEADER {
            return None;
        }
        let iov = c::ddsrt_iovec_t {
            iov_base: cdr.as_ptr().cast_mut().cast(),
            iov_len: cdr.len(),
        };
        // SAFETY: the sertype lives as long as the writer, which `self` owns. The bytes are only
        // read, copied, and checked against the type; null says that they do not fit it.
        let data = unsafe {
            c::ddsi_serdata_from_ser_iov(self.sertype.as_ptr(), kind, 1, &iov, cdr.len())
        };
        NonNull::new(data)
    }

    /// Sends the samples that batching holds back.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        // SAFETY: the handle is validated by the call.
        let code = unsafe { c::dds_write_flush(self.writer.handle()) };
        checked(|| "flush a writer".to_owned(), code).map(|_| ())
    }

    /// Waits until all matched reliable readers have everything; returns `false` if `nanos` were
    /// too few.
    pub(crate) fn wait_for_acks(&self, nanos: i64) -> Result<bool, Error> {
        // SAFETY: the handle is validated by the call.
        let code = unsafe { c::dds_wait_for_acks(self.writer.handle(), nanos) };
        if ReturnCode::from_raw(code) == ReturnCode::Timeout {
            return Ok(false);
        }
        checked(|| "wait for acknowledgements".to_owned(), code).map(|_| true)
    }
}

#[inline]
fn outcome(code: i32) -> Result<(), ReturnCode> {
    match code {
        0.. => Ok(()),
        _ => Err(ReturnCode::from_raw(code)),
    }
}

/// An array for taken samples, allocated once. The samples belong to the domain of the reader: the
/// owner empties this before the reader is closed.
#[derive(Debug)]
pub(crate) struct RawSamples {
    data: Box<[*mut c::ddsi_serdata]>,
    infos: Box<[c::dds_sample_info_t]>,
    /// The bytes of each sample, borrowed from its `data`; empty for samples without data.
    bytes: Box<[c::ddsrt_iovec_t]>,
    len: usize,
    /// The reader that took them.
    reader: c::dds_entity_t,
}

// SAFETY: samples are reference-counted atomically and do not change; nothing here is tied to the
// thread that took them.
unsafe impl Send for RawSamples {}
// SAFETY: shared access only reads.
unsafe impl Sync for RawSamples {}

impl RawSamples {
    pub(crate) fn with_capacity(n: usize) -> Self {
        let n = n.clamp(1, 1 << 16);
        // SAFETY: all zero is a valid sample info: integers, a false boolean, enumerations that
        // are integers in the bindings.
        let info: c::dds_sample_info_t = unsafe { std::mem::zeroed() };
        let nothing = c::ddsrt_iovec_t {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        Self {
            data: vec![std::ptr::null_mut(); n].into_boxed_slice(),
            infos: vec![info; n].into_boxed_slice(),
            bytes: vec![nothing; n].into_boxed_slice(),
            len: 0,
            reader: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the array is full.
    pub(crate) const fn is_full(&self) -> bool {
        self.len == self.data.len()
    }

    /// Returns its samples to the library, and takes those that have arrived for `reader`, up to
    /// the capacity.
    pub(crate) fn take(&mut self, reader: c::dds_entity_t) -> Result<usize, Error> {
        self.release();
        self.take_more(reader)
    }

    /// Takes the samples that have arrived for `reader` behind those that are here, up to the
    /// capacity. Returns the number of new ones.
    pub(crate) fn take_more(&mut self, reader: c::dds_entity_t) -> Result<usize, Error> {
        self.reader = reader;
        let first = self.len;
        let (data, infos) = (&mut self.data[first..], &mut self.infos[first..]);
        if data.is_empty() {
            return Ok(0);
        }
        let room = u32::try_from(data.len()).unwrap_or(u32::MAX);
        // SAFETY: both arrays have room for `room` elements; the handle is validated by the call.
        let code = unsafe {
            c::dds_takecdr(
                reader,
                data.as_mut_ptr(),
                room,
                infos.as_mut_ptr(),
                c::DDS_ANY_STATE,
            )
        };
        if ReturnCode::from_raw(code) == ReturnCode::NoData {
            return Ok(0);
        }
        let n = checked(|| "take samples".to_owned(), code)?;
        let new = usize::try_from(n).unwrap_or(0);
        self.len = (first + new).min(self.data.len());
        for i in first..self.len {
            self.borrow_bytes(i);
        }
        Ok(self.len - first)
    }

    /// Returns to the library the samples for whose index `is_kept` returns `false`. The others
    /// move together, in their order.
    pub(crate) fn keep(&mut self, mut is_kept: impl FnMut(usize) -> bool) {
        let mut kept = 0;
        for i in 0..self.len {
            if is_kept(i) {
                self.data.swap(kept, i);
                self.infos.swap(kept, i);
                self.bytes.swap(kept, i);
                kept += 1;
            } else {
                self.give_back(i);
            }
        }
        self.len = kept;
    }

    /// Points `bytes[i]` into sample `i`, which must be among those taken.
    fn borrow_bytes(&mut self, i: usize) {
        self.bytes[i].iov_base = std::ptr::null_mut();
        self.bytes[i].iov_len = 0;
        if !self.infos[i].valid_data {
            return;
        }
        // SAFETY: `data[i]` is a live sample of which one reference is owned; the call lends its
        // bytes, header included, and adds a reference that `release` gives back.
        unsafe {
            let size = c::ddsi_serdata_size(self.data[i]);
            c::ddsi_serdata_to_ser_ref(self.data[i], 0, size as usize, &mut self.bytes[i]);
        }
    }

    pub(crate) fn get(&self, i: usize) -> Option<(RawInfo, &[u8])> {
        if i >= self.len {
            return None;
        }
        let info = &self.infos[i];
        let bytes = &self.bytes[i];
        let slice = if bytes.iov_base.is_null() {
            &[][..]
        } else {
            // SAFETY: the bytes are borrowed from a sample whose references `self` holds until
            // `release`, which needs `&mut self`; they are not written to.
            unsafe { std::slice::from_raw_parts(bytes.iov_base.cast::<u8>(), bytes.iov_len) }
        };
        let raw = RawInfo {
            valid: info.valid_data,
            alive: info.instance_state == c::DDS_ALIVE_INSTANCE_STATE,
            disposed: info.instance_state == c::DDS_NOT_ALIVE_DISPOSED_INSTANCE_STATE,
            source_nanos: info.source_timestamp,
            instance: info.instance_handle,
            writer: info.publication_handle,
            reader: self.reader,
        };
        Some((raw, slice))
    }

    /// Returns all samples to the library.
    pub(crate) fn release(&mut self) {
        for i in 0..std::mem::take(&mut self.len) {
            self.give_back(i);
        }
    }

    /// Returns one sample to the library, which the caller leaves out of those that are here.
    fn give_back(&mut self, i: usize) {
        let data = std::mem::replace(&mut self.data[i], std::ptr::null_mut());
        // A panic in the closure of `keep` leaves samples that were returned already.
        if data.is_null() {
            return;
        }
        // SAFETY: `data` is not null, so it is a sample that was taken and not yet returned. Each
        // reference to it is released once: the one of the borrowed bytes, if there are any, and
        // the one that `take` acquired.
        unsafe {
            if !self.bytes[i].iov_base.is_null() {
                c::ddsi_serdata_to_ser_unref(data, &self.bytes[i]);
                self.bytes[i].iov_base = std::ptr::null_mut();
            }
            c::ddsi_serdata_unref(data);
        }
    }
}

impl Drop for RawSamples {
    fn drop(&mut self) {
        self.release();
    }
}
