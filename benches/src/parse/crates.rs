//! Decoders of crates.io, which run in this process.
//!
//! Before one is measured, the fields that it finds are compared with those that Fanfare finds.

use super::timed;
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
/// One refuses the message, or finds other fields.
pub(super) fn contestants(bytes: &[u8]) -> Result<Vec<Contestant>> {
    let mut decoder = Decoder::new();
    let fields = decoder.decode(bytes)?.fields();
    let fields: Fields = fields
        .map(|field| (field.tag, field.value.to_vec()))
        .collect();
    Ok(vec![
        ironfix(bytes.to_vec(), &fields)?,
        fix_codec(bytes.to_vec(), &fields)?,
        refix(Bytes::copy_from_slice(bytes), &fields)?,
        rustyfix(bytes.to_vec(), &fields)?,
        hotfix(bytes.to_vec(), &fields)?,
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

/// Its index is the caller's; it leaves CheckSum(10) out.
fn ironfix(bytes: Vec<u8>, fields: &Fields) -> Result<Contestant> {
    let mut index = FieldIndex::with_capacity(fields.len());
    let message = ironfix_tagvalue::Decoder::new(&bytes).decode_into(&mut index)?;
    let found: Fields = message
        .fields()
        .map(|field| (field.tag, field.value.to_vec()))
        .collect();
    agree("IronFix", &found, fields, &[10])?;
    let how = "ironfix-tagvalue 0.5.1, decode_into";
    Ok(Contestant::new("IronFix", how, move || {
        timed(|| {
            let mut decoder = ironfix_tagvalue::Decoder::new(black_box(&bytes));
            let message = decoder.decode_into(&mut index)?;
            Ok(!black_box(message).msg_type().as_str().is_empty())
        })
    }))
}

/// Its checks are calls of their own.
fn fix_codec(bytes: Vec<u8>, fields: &Fields) -> Result<Contestant> {
    let mut decoder = fix_codec_rs::decoder::Decoder::with_capacity(fields.len());
    let message = decoder
        .decode(&bytes)
        .map_err(|error| anyhow!("fix-codec-rs: {error:?}"))?;
    let found: Fields = message
        .fields()
        .map(|field| (field.tag, field.value.to_vec()))
        .collect();
    agree("fix-codec-rs", &found, fields, &[])?;
    let how = "0.3.0, decode and both checks";
    Ok(Contestant::new("fix-codec-rs", how, move || {
        timed(|| {
            let message = decoder.decode(black_box(&bytes));
            let message = message.map_err(|error| anyhow!("{error:?}"))?;
            Ok(message.validate_body_length().is_ok() && message.validate_checksum().is_ok())
        })
    }))
}

/// A message owns its index.
fn refix(bytes: Bytes, fields: &Fields) -> Result<Contestant> {
    let tokenizer = refix_message::Tokenizer::default();
    let message = tokenizer
        .tokenize(bytes.clone())
        .map_err(|error| anyhow!("refix: {error:?}"))?;
    let found: Fields = message
        .entries()
        .map(|(tag, value)| (tag.0, value.to_vec()))
        .collect();
    agree("refix", &found, fields, &[])?;
    let how = "refix-message 0.4.0, Tokenizer";
    Ok(Contestant::new("refix", how, move || {
        timed(|| {
            let message = tokenizer.tokenize(black_box(&bytes).clone());
            Ok(black_box(message).is_ok())
        })
    }))
}

/// A fork of fefix; it leaves BodyLength(9) and CheckSum(10) out.
fn rustyfix(bytes: Vec<u8>, fields: &Fields) -> Result<Contestant> {
    let dictionary = rustyfix::Dictionary::fix44().map_err(|error| anyhow!("{error:?}"))?;
    let mut decoder = rustyfix::tagvalue::Decoder::new(dictionary);
    let message = decoder
        .decode(&bytes)
        .map_err(|error| anyhow!("rustyfix: {error:?}"))?;
    let found: Fields = message
        .fields()
        .map(|(tag, value)| (tag.get(), value.to_vec()))
        .collect();
    agree("rustyfix", &found, fields, &[9, 10])?;
    let how = "0.7.4, the maintained fork of fefix";
    Ok(Contestant::new("rustyfix", how, move || {
        timed(|| Ok(black_box(decoder.decode(black_box(&bytes))).is_ok()))
    }))
}

/// hotfix copies fields into maps, and accepts only those that its dictionary defines for a
/// message.
fn hotfix(bytes: Vec<u8>, fields: &Fields) -> Result<Contestant> {
    let builder = MessageBuilder::new(Dictionary::fix44(), Config::default());
    let builder = builder.map_err(|error| anyhow!("hotfix: {error:?}"))?;
    let message = builder
        .build(&bytes)
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
    Ok(Contestant::new("hotfix", how, move || {
        timed(|| {
            let message = black_box(builder.build(black_box(&bytes)));
            Ok(matches!(message, ParsedMessage::Valid(_)))
        })
    }))
}

fn count(part: &FieldMap) -> usize {
    let entries = part.groups.values().flatten();
    part.fields.len()
        + entries
            .map(|entry| count(entry.get_fields()))
            .sum::<usize>()
}
