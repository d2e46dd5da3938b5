//! A reader that is there and takes nothing, beside others.

use std::sync::mpsc;
use std::time::Duration;

use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::relief::RelievedWriter;
use fanfare_dds::{Domain, DomainConfig, Error, Qos, Reliability, ReturnCode, Status};

use crate::support::{PATIENCE, domain_id, quote, topic_name, wait_until};

/// Writes a quote as soon as no reader holds the writer up.
fn write(writer: &mut RelievedWriter, buffer: &mut CdrBuffer, price: f64) -> Option<bool> {
    buffer.begin();
    buffer.u32(5);
    buffer.f64(price);
    buffer.string(b"XPAR");
    let sample = buffer.finish().unwrap();
    let mut change = None;
    wait_until("a write", || {
        change = writer.look().unwrap().or(change);
        let written = writer.write(sample);
        let is_in_vain = matches!(
            written,
            Err(Error::Dds {
                code: ReturnCode::Timeout,
                ..
            })
        );
        assert!(is_in_vain || written.is_ok(), "{written:?}");
        !is_in_vain
    });
    change
}

#[test]
fn a_reader_that_takes_nothing_does_not_stop_the_others() {
    let id = domain_id();
    let here = Domain::open(&DomainConfig {
        unacknowledged: 64 << 10,
        linger: Duration::ZERO,
        ..DomainConfig::new(id)
    });
    let [there, elsewhere] = [(); 2].map(|()| Domain::open(&DomainConfig::new(id)).unwrap());
    let name = topic_name("relief");
    let qos = Qos::reliable().reliability(Reliability::Reliable(Duration::from_millis(10)));
    let topic = elsewhere.topic(&name, &quote(), &qos).unwrap();
    let full = qos.clone().resource_limits(Some(4), None, None);
    let stuck = topic.reader(&full).open().unwrap();
    let (send, received) = mpsc::channel();
    let topic = there.topic(&name, &quote(), &qos).unwrap();
    let reading = topic.reader(&qos).on_sample(move |sample| {
        let mut cdr = sample.cdr().unwrap();
        let _ = (cdr.u32().unwrap(), send.send(cdr.f64().unwrap()));
    });
    let _reading = reading.open().unwrap();
    let (send, matched) = mpsc::channel();
    let topic = here.unwrap().topic(&name, &quote(), &qos).unwrap();
    let patience = Some(Duration::from_secs(1));
    let writer = RelievedWriter::open(&topic, &qos, patience, move |status| {
        if let Status::Matched { current, .. } = status {
            let _ = send.send(current);
        }
    });
    let mut writer = writer.unwrap();
    while matched.recv_timeout(PATIENCE).unwrap() < 2 {}
    let mut buffer = CdrBuffer::with_capacity(64);
    // The other reader gets all samples in order, each once: before, and during the relief.
    let mut number = 0..;
    let mut next = |writer: &mut RelievedWriter| {
        let price = f64::from(number.next().unwrap_or(0_u32));
        let change = write(writer, &mut buffer, price);
        assert_eq!(received.recv_timeout(PATIENCE).ok(), Some(price));
        change
    };
    let mut change = None;
    while change != Some(true) {
        change = next(&mut writer).or(change);
    }
    for _ in 0..5_000 {
        assert_eq!(next(&mut writer), None);
    }
    let names = writer.readers().unwrap();
    assert!(names.len() == 2 && names[0].pid.is_some(), "{names:?}");
    drop(stuck);
    while change != Some(false) {
        change = next(&mut writer).or(change);
    }
    for _ in 0..1_000 {
        assert_eq!(next(&mut writer), None);
    }
    assert!(writer.wait_for_acks(PATIENCE).unwrap());
    assert!(received.try_recv().is_err());
}
