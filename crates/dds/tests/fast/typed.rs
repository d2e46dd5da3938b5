//! Rust structures printed from the templates, which hold what the converter writes.

use std::sync::Arc;

use fanfare_dds::cdr::{CdrBuffer, CdrReader, CdrType};
use fanfare_dds::fast::{Converted, Converter, Mapping, TypeOptions};
use fanfare_fast::{Decoder, Program, Record};

use crate::generated::{Done, MarketData, QuoteRequest};
use crate::{complex, packets};

fn mapping() -> Arc<Mapping> {
    let program = Arc::new(Program::complex());
    Arc::new(Mapping::new(program, &TypeOptions::default()).unwrap())
}

#[test]
fn the_structures_of_the_templates_are_what_the_command_prints() {
    let (_, printed) = include_str!("generated.rs").split_once('\n').unwrap();
    assert_eq!(mapping().rust().unwrap(), printed);
    let types = mapping();
    let sample = |name| (*types.by_name(name).unwrap().sample).clone();
    assert_eq!(MarketData::structure(), Some(sample("MarketData")));
    assert_eq!(QuoteRequest::structure(), Some(sample("QuoteRequest")));
    assert_eq!(Done::structure(), Some(sample("Done")));
}

#[test]
fn each_sample_reads_as_its_structure_and_is_written_from_it_as_it_was() {
    fn same<T: CdrType>(cdr: &[u8], buffer: &mut CdrBuffer) {
        let value = T::read_cdr(&mut CdrReader::new(cdr).unwrap()).unwrap();
        buffer.begin();
        value.write_cdr(buffer);
        assert_eq!(buffer.finish().unwrap(), cdr);
    }
    let mapping = mapping();
    let mut decoder = Decoder::new(Arc::clone(mapping.program()));
    let mut record = Record::new();
    let mut converter = Converter::new(Arc::clone(&mapping), 1 << 14);
    let mut buffer = CdrBuffer::with_capacity(1 << 14);
    let mut count = 0;
    for packet in packets(complex(1_000)) {
        decoder.reset();
        decoder.decode_record(&packet, &mut record).unwrap();
        let take = |sample: Converted<'_>| {
            count += 1;
            match sample.template.name.as_str() {
                "MarketData" => same::<MarketData>(sample.cdr, &mut buffer),
                "QuoteRequest" => same::<QuoteRequest>(sample.cdr, &mut buffer),
                _ => same::<Done>(sample.cdr, &mut buffer),
            }
        };
        converter.samples(&record, take).unwrap();
    }
    assert!(count > 1_000, "{count}");
}
