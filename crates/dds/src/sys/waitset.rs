//! Waiting for any of several readers.

use std::sync::Arc;

use cyclors as c;

use super::{Entity, checked};
use crate::{Error, ReturnCode};

/// The condition that a reader has samples.
#[derive(Debug)]
pub(crate) struct RawCondition(Arc<Entity>);

impl RawCondition {
    pub(crate) fn new(reader: &Arc<Entity>) -> Result<Self, Error> {
        // SAFETY: the handle is validated by the call.
        let handle = unsafe { c::dds_create_readcondition(reader.handle(), c::DDS_ANY_STATE) };
        let action = || "create a read condition".to_owned();
        Entity::adopt(action, handle, None, vec![Arc::clone(reader)]).map(Self)
    }
}

/// A waitset and the conditions in it, each under its index.
#[derive(Debug)]
pub(crate) struct RawWaitSet {
    // Dropped before the conditions, which detaches them.
    waitset: Arc<Entity>,
    conditions: Vec<RawCondition>,
    triggered: Vec<c::dds_attach_t>,
}

impl RawWaitSet {
    pub(crate) fn new(participant: &Arc<Entity>) -> Result<Self, Error> {
        // SAFETY: the handle is validated by the call.
        let handle = unsafe { c::dds_create_waitset(participant.handle()) };
        let action = || "create a waitset".to_owned();
        let waitset = Entity::adopt(action, handle, None, vec![Arc::clone(participant)])?;
        Ok(Self {
            waitset,
            conditions: Vec::new(),
            triggered: Vec::new(),
        })
    }

    pub(crate) fn attach(&mut self, condition: RawCondition) -> Result<usize, Error> {
        let index = self.conditions.len();
        let x = c::dds_attach_t::try_from(index).unwrap_or(c::dds_attach_t::MAX);
        // SAFETY: both handles are validated by the call; `x` is a number to the library.
        let code = unsafe { c::dds_waitset_attach(self.waitset.handle(), condition.0.handle(), x) };
        checked(|| "attach a reader to a waitset".to_owned(), code)?;
        self.conditions.push(condition);
        self.triggered.resize(self.conditions.len(), 0);
        Ok(index)
    }

    /// Waits, and calls `ready` with the index of each reader that has samples.
    pub(crate) fn wait(&mut self, nanos: i64, mut ready: impl FnMut(usize)) -> Result<(), Error> {
        // SAFETY: the array has the length given; the handle is validated by the call.
        let code = unsafe {
            c::dds_waitset_wait(
                self.waitset.handle(),
                self.triggered.as_mut_ptr(),
                self.triggered.len(),
                nanos,
            )
        };
        if ReturnCode::from_raw(code) == ReturnCode::Timeout {
            return Ok(());
        }
        let n = checked(|| "wait for samples".to_owned(), code)?;
        let n = usize::try_from(n).unwrap_or(0);
        for x in self.triggered.iter().take(n) {
            if let Ok(index) = usize::try_from(*x) {
                ready(index);
            }
        }
        Ok(())
    }
}
