//! Decoders of crates.io, which run in this process.
//!
//! Before one is measured, the fields that it finds are compared with those that Fanfare finds, and
//! it must refuse a wrong BodyLength(9) and a wrong CheckSum(10).

use super::{messages, timed};
use crate::contest::Contestant;
use anyhow::{Context, Result, anyhow, ensure};
use bytes::Bytes;
use fanfare_fix::codec::Decoder;
use hotfix_message::dict::Dictionary;
use hotfix_message::message::Config;
use hotfix_message::parsed_message::ParsedMessage;
use hotfix_message::{FieldMap, MessageBuilder, Part};
use ironfix_tagvalue::FieldIndex;
use std::hint::black_box;

/// Those that are there, each with the configuration of its own benchmark or example.
///
/// # Errors
/// One refuses the message, finds other fields, or accepts a wrong message.
pub(super) fn contestants(bytes: &[u8]) -> Result<Vec<Contestant>> {
    let mut decoder = Decoder::new();
    let fields = decoder.decode(bytes)?.fields();
    let fields: Fields = fields
        .map(|field| (field.tag, field.value.to_vec()))
        .collect();
    Ok(vec![
        ironfix(bytes, &fields)?,
        fix_codec(bytes, &fields)?,
        refix(bytes, &fields)?,
        rustyfix(bytes, &fields)?,
        hotfix(bytes, &fields)?,
    ])
}

/// Tag and value of each field of a message.
type Fields = Vec<(u32, Vec<u8>)>;

/// Checks that what was found is `fields`, but for those with a tag of `left_out`.
fn agree(who: &str, found: &Fields, fields: &Fields, left_out: &[u32]) -> Result<()> {
    let wanted = fields.iter().filter(|(tag, _)| !left_out.contains(tag));
    ensure!(found.iter().eq(wanted), "{who} found {found:?}");
    Ok(())
}

/// A decoder of bytes that it takes as `B`. `parse` returns whether it accepts them.
fn contestant<B: From<Vec<u8>> + 'static>(
    name: &'static str,
    how: &str,
    bytes: &[u8],
    mut parse: impl FnMut(&B) -> bool + 'static,
) -> Result<Contestant> {
    for (field, wrong) in messages::wrong(bytes)? {
        ensure!(!parse(&B::from(wrong)), "{name} accepts a wrong {field}");
    }
    let bytes = B::from(bytes.to_vec());
    Ok(Contestant::new(name, how, move || {
        timed(|| Ok(parse(black_box(&bytes))))
    }))
}

/// Its index is the caller's; it leaves CheckSum(10) out.
fn ironfix(bytes: &[u8], fields: &Fields) -> Result<Contestant> {
    let mut index = FieldIndex::with_capacity(fields.len());
    let message = ironfix_tagvalue::Decoder::new(bytes).decode_into(&mut index)?;
    let found: Fields = message
        .fields()
        .map(|field| (field.tag, field.value.to_vec()))
        .collect();
    agree("IronFix", &found, fields, &[10])?;
    let how = "ironfix-tagvalue 0.5.1, decode_into";
    contestant("IronFix", how, bytes, move |bytes: &Vec<u8>| {
        let mut decoder = ironfix_tagvalue::Decoder::new(bytes);
        let Ok(message) = decoder.decode_into(&mut index) else {
            return false;
        };
        !black_box(message).msg_type().as_str().is_empty()
    })
}

/// Its checks are calls of their own.
fn fix_codec(bytes: &[u8], fields: &Fields) -> Result<Contestant> {
    let mut decoder = fix_codec_rs::decoder::Decoder::with_capacity(fields.len());
    let message = decoder
        .decode(bytes)
        .map_err(|error| anyhow!("fix-codec-rs: {error:?}"))?;
    let found: Fields = message
        .fields()
        .map(|field| (field.tag, field.value.to_vec()))
        .collect();
    agree("fix-codec-rs", &found, fields, &[])?;
    let how = "0.3.0, decode and both checks";
    contestant("fix-codec-rs", how, bytes, move |bytes: &Vec<u8>| {
        let Ok(message) = decoder.decode(bytes) else {
            return false;
        };
        message.validate_body_length().is_ok() && message.validate_checksum().is_ok()
    })
}

/// A message owns its index.
fn refix(bytes: &[u8], fields: &Fields) -> Result<Contestant> {
    let tokenizer = refix_message::Tokenizer::default();
    let message = tokenizer
        .tokenize(Bytes::copy_from_slice(bytes))
        .map_err(|error| anyhow!("refix: {error:?}"))?;
    let found: Fields = message
        .entries()
        .map(|(tag, value)| (tag.0, value.to_vec()))
        .collect();
    agree("refix", &found, fields, &[])?;
    let how = "refix-message 0.4.0, Tokenizer";
    contestant("refix", how, bytes, move |bytes: &Bytes| {
        black_box(tokenizer.tokenize(bytes.clone())).is_ok()
    })
}

/// A fork of fefix; it leaves BodyLength(9) and CheckSum(10) out.
fn rustyfix(bytes: &[u8], fields: &Fields) -> Result<Contestant> {
    let dictionary = rustyfix::Dictionary::fix44().map_err(|error| anyhow!("{error:?}"))?;
    let mut decoder = rustyfix::tagvalue::Decoder::new(dictionary);
    let message = decoder
        .decode(bytes)
        .map_err(|error| anyhow!("rustyfix: {error:?}"))?;
    let found: Fields = message
        .fields()
        .map(|(tag, value)| (tag.get(), value.to_vec()))
        .collect();
    agree("rustyfix", &found, fields, &[9, 10])?;
    let how = "0.7.4, the maintained fork of fefix";
    contestant("rustyfix", how, bytes, move |bytes: &Vec<u8>| {
        black_box(decoder.decode(bytes)).is_ok()
    })
}

/// hotfix copies fields into maps, and accepts only those that its dictionary defines for a
/// message.
fn hotfix(bytes: &[u8], fields: &Fields) -> Result<Contestant> {
    let builder = MessageBuilder::new(Dictionary::fix44(), Config::default());
    let builder = builder.map_err(|error| anyhow!("hotfix: {error:?}"))?;
    let message = builder
        .build(bytes)
        .into_message()
        .context("hotfix: garbled")?;
    let parts = [
        message.header().get_field_map(),
        message.get_field_map(),
        message.trailer().get_field_map(),
    ];
    let found: usize = parts.into_iter().map(count).sum();
    ensure!(found == fields.len(), "hotfix found {found} fields");
    let how = "hotfix-message 0.4.0";
    contestant("hotfix", how, bytes, move |bytes: &Vec<u8>| {
        matches!(black_box(builder.build(bytes)), ParsedMessage::Valid(_))
    })
}

fn count(part: &FieldMap) -> usize {
    let entries = part.groups.values().flatten();
    part.fields.len()
        + entries
            .map(|entry| count(entry.get_fields()))
            .sum::<usize>()
}
