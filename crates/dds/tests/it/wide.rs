//! Wide characters and strings: the library checks their form on the way out and in, and a foreign
//! reader decodes them by the announced type.

use fanfare_dds::cdr::{CdrBuffer, to_json};
use fanfare_dds::discovery::EndpointKind;
use fanfare_dds::types::{Kind, StructType};
use fanfare_dds::{Error, Qos};

use crate::support::{PATIENCE, pair, topic_name, wait_until};

#[test]
fn wide_text_is_read_by_who_has_never_heard_of_the_type() {
    let (here, there) = pair();
    let name = topic_name("wide");
    let t = StructType::new("Test::Wide")
        .key("id", Kind::UInt32)
        .member("name", Kind::WString(None))
        .member("brief", Kind::WString(Some(3)))
        .member("mark", Kind::WChar)
        .member("all", Kind::Sequence(Box::new(Kind::WString(None)), None))
        .member("last", Kind::UInt64);
    assert!(t.idl().contains("wstring<3> brief;"), "{}", t.idl());
    let qos = Qos::last_value();
    let writer = there.topic(&name, &t, &qos).unwrap().writer(&qos);
    let writer = writer.open().unwrap();
    let mut buffer = CdrBuffer::with_capacity(256);
    let mut write = |brief: &str| {
        buffer.begin();
        buffer.u32(7);
        buffer.wide_string("Zürich 𝄞");
        buffer.wide_string(brief);
        buffer.u16(0x20ac);
        buffer.u32(2);
        buffer.wide_string("");
        buffer.wide_string("\"");
        buffer.u64(9);
        writer.write(buffer.finish().unwrap())
    };
    let refused = write("four");
    assert!(matches!(refused, Err(Error::SampleMismatch { .. })));
    write("a€b").unwrap();
    let mut discovery = here.discovery().unwrap();
    let mut found = None;
    wait_until("the writer", || {
        discovery.update().unwrap();
        let mut all = discovery.endpoints();
        let writer = all.find(|e| e.topic == name && e.kind == EndpointKind::Writer);
        found = writer.filter(|e| e.has_type()).cloned();
        found.is_some()
    });
    let found = found.unwrap();
    let topic = here.found_topic(&found, PATIENCE).unwrap();
    let reader = topic.reader(&found.reader_qos(4)).open().unwrap();
    let mut samples = reader.samples(4);
    wait_until("the sample", || reader.take(&mut samples).unwrap() > 0);
    let sample = samples.get(0).unwrap();
    let json = to_json(topic.sample_type(), sample.bytes()).unwrap();
    let expected = "{\"id\": 7, \"name\": \"Zürich 𝄞\", \"brief\": \"a€b\", \"mark\": \"€\", \
                    \"all\": [\"\", \"\\\"\"], \"last\": 9}";
    assert_eq!(json, expected);
}
