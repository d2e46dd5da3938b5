//! The flat file of orders.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use fanfare_fix::codec::{Decoder, Encoder};
use fanfare_fix::dict::{self, Dictionary, Switches};
use fanfare_fix::{msg_type, tag};

/// The longest line accepted, in bytes.
pub const MAX_LINE: usize = 4096;
/// The most orders accepted from one file.
pub const MAX_ORDERS: usize = 1_000_000;

const SOH: u8 = 1;

/// The orders of a flat file, validated and ready to be sent.
///
/// The file has one NewOrderSingle(D) of FIX.4.4 per line: its fields after the standard header,
/// `tag=value`, separated by `|` or SOH; the last separator is optional. `35=D` may precede them.
/// Empty lines and lines that begin with `#` are skipped. Each line is fully validated by the
/// dictionary of FIX.4.4. The limits are [`MAX_ORDERS`] lines of [`MAX_LINE`] bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Orders {
    /// The fields of all orders, concatenated, each with a separator at its end.
    bytes: Vec<u8>,
    /// The end of each order.
    ends: Vec<usize>,
}

/// The error of a file of orders.
#[derive(Debug, thiserror::Error)]
pub enum OrdersError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A line is no order.
    #[error("{}, line {line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The fault.
        why: String,
    },
    /// No line has an order.
    #[error("{} has no order", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl Orders {
    /// Returns the built-in orders: 20,000, as [`line`](Self::line) makes them.
    #[must_use]
    pub fn built_in() -> Self {
        let mut orders = Self::default();
        for number in 1..=20_000 {
            orders.push(Self::line(number).replace('|', "\x01").as_bytes());
        }
        orders
    }

    /// Returns the line of a generated order, without its end: a limit order with `number` as its
    /// ClOrdID(11), from which all other fields are derived.
    #[must_use]
    pub fn line(number: u64) -> String {
        const SYMBOLS: [&str; 8] = [
            "EUR/USD", "USD/JPY", "GBP/USD", "AUD/USD", "USD/CHF", "EUR/GBP", "USD/CAD", "NZD/USD",
        ];
        let symbol = SYMBOLS.get(number as usize % 8).unwrap_or(&"EUR/USD");
        let (side, time_in_force) = (1 + number / 8 % 2, number / 16 % 2 * 3);
        let (quantity, price) = (100 * (1 + number % 997), 10_000 + number % 4_999);
        let (whole, part, ms) = (price / 10_000, price % 10_000, number % 60_000);
        let mut line = format!("11={number:08}|21=1|55={symbol}|54={side}");
        // Writing to a String cannot fail.
        let _ = write!(
            line,
            "|60=20261120-10:00:{:02}.{:03}|38={quantity}|40=2|44={whole}.{part:04}\
             |59={time_in_force}",
            ms / 1000,
            ms % 1000
        );
        line
    }

    /// Reads and validates a file.
    ///
    /// # Errors
    /// The file cannot be read, has no order, or has a malformed line, which the error names.
    pub fn read(path: &Path) -> Result<Self, OrdersError> {
        let io_error = |error| OrdersError::Io {
            path: path.to_owned(),
            error,
        };
        let mut file = BufReader::new(File::open(path).map_err(io_error)?);
        let (mut orders, mut check) = (Self::default(), Check::new());
        let (mut text, mut number) = (Vec::new(), 0);
        loop {
            number += 1;
            text.clear();
            let most = MAX_LINE as u64 + 2;
            let read = file.by_ref().take(most).read_until(b'\n', &mut text);
            if read.map_err(io_error)? == 0 {
                break;
            }
            let wrong = |why: String| OrdersError::Line {
                path: path.to_owned(),
                line: number,
                why,
            };
            let line = text.trim_ascii();
            if line.len() > MAX_LINE {
                return Err(wrong(format!("longer than {MAX_LINE} bytes")));
            }
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            if orders.len() == MAX_ORDERS {
                return Err(wrong(format!("more than {MAX_ORDERS} orders")));
            }
            orders.push(check.body(line).map_err(wrong)?);
        }
        if orders.is_empty() {
            let path = path.to_owned();
            return Err(OrdersError::Empty { path });
        }
        Ok(orders)
    }

    /// Returns the number of orders; at least one if they were read or are built in.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no orders.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the length of the longest order's fields, in bytes.
    #[must_use]
    pub fn longest(&self) -> usize {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let lengths = self.ends.iter().zip(starts).map(|(end, start)| end - start);
        lengths.max().unwrap_or(0)
    }

    /// Returns the fields of the order that a session sends as its `number`-th, from 0. The first
    /// order follows the last one.
    #[must_use]
    #[inline]
    pub fn body(&self, number: u64) -> &[u8] {
        let index = match usize::try_from(number) {
            Ok(small) if small < self.len() => small,
            _ => (number % self.len().max(1) as u64) as usize,
        };
        let end = self.ends.get(index).copied().unwrap_or(0);
        let start = index
            .checked_sub(1)
            .and_then(|before| self.ends.get(before));
        self.bytes
            .get(start.copied().unwrap_or(0)..end)
            .unwrap_or(&[])
    }

    fn push(&mut self, body: &[u8]) {
        self.bytes.extend_from_slice(body);
        if body.last() != Some(&SOH) {
            self.bytes.push(SOH);
        }
        self.ends.push(self.bytes.len());
    }
}

/// A converter of lines to the fields of orders, which validates them.
struct Check {
    body: Vec<u8>,
    message: Vec<u8>,
    decoder: Decoder,
    dictionary: std::sync::Arc<Dictionary>,
}

impl Check {
    fn new() -> Self {
        Self {
            body: Vec::new(),
            message: vec![0; MAX_LINE + 512],
            decoder: Decoder::new(),
            dictionary: Dictionary::built_in(dict::Version::Fix44),
        }
    }

    /// Returns the fields of the order, or the fault of the line.
    fn body(&mut self, line: &[u8]) -> Result<&[u8], String> {
        let line = line.strip_prefix(b"35=D").map_or(line, |rest| {
            rest.strip_prefix(b"|")
                .or_else(|| rest.strip_prefix(&[SOH]))
                .unwrap_or(line)
        });
        self.body.clear();
        let separated = line.iter().map(|&b| if b == b'|' { SOH } else { b });
        self.body.extend(separated);
        if self.body.last() != Some(&SOH) {
            self.body.push(SOH);
        }
        let mut encoder = Encoder::new(&mut self.message, b"FIX.4.4", msg_type::NEW_ORDER_SINGLE);
        encoder
            .u64(tag::MSG_SEQ_NUM, 1)
            .str(tag::SENDER_COMP_ID, "BUY")
            .str(tag::SENDING_TIME, "20261120-10:00:00.000")
            .str(tag::TARGET_COMP_ID, "SELL")
            .raw(&self.body);
        let range = encoder.finish().map_err(|error| error.to_string())?;
        let bytes = self.message.get(range).unwrap_or(&[]);
        let message = self.decoder.decode(bytes).map_err(|e| e.to_string())?;
        let verdict = self.dictionary.validate(&message, Switches::default());
        verdict.map_err(|violation| violation.to_string())?;
        if message.body() != self.body {
            return Err("a field of the header or trailer, which the session writes".to_owned());
        }
        Ok(&self.body)
    }
}
