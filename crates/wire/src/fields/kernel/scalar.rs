//! The scalar kernel: one byte at a time.

use crate::fields::{Fault, FaultKind, FieldIndex, Indexed, SOH, parse_tag};
use crate::int::parse_u64;
use crate::sum::byte_sum;

/// Indexes the fields of `bytes` one after the other.
pub(super) fn index(bytes: &[u8], index: &mut FieldIndex) -> Indexed {
    index.clear();
    Indexed {
        sum: byte_sum(bytes),
        fault: index_fields(bytes, index).err(),
        may_hold_data: true,
    }
}

fn index_fields(bytes: &[u8], index: &mut FieldIndex) -> Result<(), Fault> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(Fault {
            offset: 0,
            kind: FaultKind::TooLong,
        });
    }
    // The data tag that the previous field announces, and that field's value.
    let mut announced: Option<(u32, &[u8])> = None;
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let fault = |kind| Fault {
            offset: at as u32,
            kind,
        };
        let equals = rest.iter().position(|&byte| byte == b'=' || byte == SOH);
        let equals = equals.ok_or(fault(FaultKind::Unterminated))?;
        if rest[equals] == SOH {
            return Err(fault(FaultKind::NoEquals));
        }
        let tag = parse_tag(&rest[..equals]);
        let value = &rest[equals + 1..];
        let length = match announced {
            Some((data_tag, length)) if data_tag == tag => {
                data_length(value, length).ok_or(fault(FaultKind::DataLength))?
            }
            _ => {
                let end = value.iter().position(|&byte| byte == SOH);
                end.ok_or(fault(FaultKind::Unterminated))?
            }
        };
        let begin = at + equals + 1;
        if !index.push(tag, begin, begin + length) {
            return Err(fault(FaultKind::TooManyFields));
        }
        announced = index
            .data
            .data_tag(tag)
            .map(|data_tag| (data_tag, &value[..length]));
        at = begin + length + 1;
    }
    Ok(())
}

/// Returns the length that `text` states, or `None` if no separator follows as many bytes of
/// `value`.
fn data_length(value: &[u8], text: &[u8]) -> Option<usize> {
    let length = usize::try_from(parse_u64(text)?).ok()?;
    (*value.get(length)? == SOH).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> (Vec<(u32, String)>, Option<Fault>) {
        let bytes: Vec<u8> = text
            .bytes()
            .map(|b| if b == b'|' { SOH } else { b })
            .collect();
        let mut index = FieldIndex::with(crate::DataFields::standard(), crate::Kernel::Scalar);
        let indexed = index.index(&bytes);
        assert_eq!(indexed.sum, byte_sum(&bytes));
        let value =
            |i: usize| text[index.begins()[i] as usize..index.ends()[i] as usize].to_owned();
        (
            (0..index.len())
                .map(|i| (index.tags()[i], value(i)))
                .collect(),
            indexed.fault,
        )
    }

    fn good(text: &str) -> Vec<(u32, String)> {
        let (fields, fault) = fields(text);
        assert_eq!(fault, None, "{text}");
        fields
    }

    fn fault(text: &str) -> (u32, FaultKind) {
        let fault = fields(text).1.expect(text);
        (fault.offset, fault.kind)
    }

    fn owned(fields: &[(u32, &str)]) -> Vec<(u32, String)> {
        fields
            .iter()
            .map(|&(tag, value)| (tag, value.to_owned()))
            .collect()
    }

    #[test]
    fn plain_fields() {
        assert_eq!(good(""), []);
        assert_eq!(
            good("8=FIX.4.4|35=0|58=|"),
            owned(&[(8, "FIX.4.4"), (35, "0"), (58, "")])
        );
        assert_eq!(good("58=a=b==|=x|"), owned(&[(58, "a=b=="), (0, "x")]));
    }

    #[test]
    fn tags_that_are_no_numbers_are_zero() {
        let text = "0=a|-1=b|x=c|999999999=d|1000000000=e|12x=f|007=g|";
        let tags: Vec<u32> = good(text).into_iter().map(|field| field.0).collect();
        assert_eq!(tags, [0, 0, 0, 999_999_999, 0, 0, 7]);
    }

    #[test]
    fn data_may_hold_separators() {
        assert_eq!(
            good("95=5|96=a|b=c|1=x|"),
            owned(&[(95, "5"), (96, "a|b=c"), (1, "x")])
        );
        assert_eq!(
            good("95=0|96=|1=x|"),
            owned(&[(95, "0"), (96, ""), (1, "x")])
        );
        // Another field between the two, or another pair's: no announcement.
        assert_eq!(
            good("95=5|1=x|96=a|"),
            owned(&[(95, "5"), (1, "x"), (96, "a")])
        );
        assert_eq!(good("95=5|355=a|"), owned(&[(95, "5"), (355, "a")]));
    }

    #[test]
    fn faults_name_the_field() {
        assert_eq!(fault("1=a|b|"), (4, FaultKind::NoEquals));
        assert_eq!(fault("1=a||2=b|"), (4, FaultKind::NoEquals));
        assert_eq!(fault("1=a|22=b"), (4, FaultKind::Unterminated));
        assert_eq!(fault("1=a|22"), (4, FaultKind::Unterminated));
        assert_eq!(fault("95=9|96=abc|"), (5, FaultKind::DataLength));
        assert_eq!(fault("95=2|96=abc|"), (5, FaultKind::DataLength));
        assert_eq!(fault("95=x|96=abc|"), (5, FaultKind::DataLength));
        assert_eq!(
            fault("95=18446744073709551615|96=abc|"),
            (24, FaultKind::DataLength)
        );
    }

    #[test]
    fn the_number_of_fields_is_limited() {
        let mut index = FieldIndex::new();
        index.set_max_fields(300);
        assert_eq!(index.index(&b"1=a\x01".repeat(300)).fault, None);
        let fault = index.index(&b"1=a\x01".repeat(301)).fault;
        assert_eq!(
            fault,
            Some(Fault {
                offset: 1200,
                kind: FaultKind::TooManyFields
            })
        );
        assert_eq!(index.len(), 300);
    }
}
