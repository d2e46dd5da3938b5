//! The messages d, y, f and h.

use super::{ToFix, WriteError, names};
use crate::event::{Event, InstrumentId};
use crate::instruments::{Instrument, Lookup};
use crate::price::Price;
use fanfare_fix::codec::FieldWriter;
use fanfare_fix::dict::Layout;
use fanfare_wire::Precision;
use fanfare_wire::{Decimal, UtcTimestamp, int};

/// The request that a definition or a list responds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// SecurityReqID(320).
    pub id: &'a [u8],
    /// SecurityResponseID(322).
    pub response: &'a [u8],
    /// The number of instruments of the whole response, if known: TotNoRelatedSym(393).
    pub total: Option<u64>,
    /// LastFragment(893) of a list: whether it is the last message.
    pub is_last: bool,
}

impl ToFix {
    /// Writes the body of d, SecurityDefinition. Returns how many values were left out because this
    /// version does not have the field, or the value of it.
    ///
    /// # Errors
    ///
    /// Returns a [`WriteError`] if the instrument does not exist, or the version does not have the
    /// message.
    pub fn definition(
        &self,
        table: &impl Lookup,
        request: &Request<'_>,
        instrument: InstrumentId,
        out: &mut FieldWriter<'_>,
    ) -> Result<u32, WriteError> {
        let body = self.body(b"d")?;
        let known = table.instrument(instrument).ok_or(WriteError::Instrument)?;
        out.field(320, request.id).field(322, request.response);
        // It is accepted as requested.
        out.u64(323, 1);
        if body.has(393) {
            // FIX.4.2 requires it.
            out.u64(393, request.total.unwrap_or(1));
        }
        names(&known.definition.name, |tag| body.has(tag), out);
        let market = self.market_of(body, &known);
        let is_of_market = |tag| market.is_some_and(|market| market.has(tag) && !body.has(tag));
        let mut fields = Fields::new(self, body);
        fields.write(&known, |tag| !is_of_market(tag), out);
        let Some(market) = market else {
            return Ok(fields.left_out);
        };
        let mut of_market = Fields::new(self, market);
        out.u64(MARKETS, 1);
        of_market.ordered(&known, is_of_market, out);
        Ok(fields.left_out + of_market.left_out)
    }

    /// Returns the entry of the instrument's market, if the version has fields there alone that the
    /// instrument has: its segment and its limits of prices. An entry begins with MarketID(1301).
    fn market_of<'f>(&self, body: Layout<'f>, known: &Instrument<'_>) -> Option<Layout<'f>> {
        let of = &known.definition;
        let has_limits = of.low_limit.is_defined() || of.high_limit.is_defined();
        let has_market = !of.market.is_empty() && self.dictionary.fits(1301, of.market);
        let market = body.group(MARKETS).filter(|market| market.has(1301));
        market.filter(|_| has_market && (has_limits || !of.segment.is_empty()))
    }

    /// Writes the body of y, SecurityList. Returns how many values were left out.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ToFix::definition`]. FIX.4.2 does not have the message.
    pub fn list(
        &self,
        table: &impl Lookup,
        request: &Request<'_>,
        instruments: &[InstrumentId],
        out: &mut FieldWriter<'_>,
    ) -> Result<u32, WriteError> {
        self.list_with(table, request, instruments, |_| None, out)
    }

    /// Writes the body of y as [`ToFix::list`] does, with the Text(58) of each instrument for which
    /// `text` returns one.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ToFix::list`].
    pub fn list_with<'t>(
        &self,
        table: &impl Lookup,
        request: &Request<'_>,
        instruments: &[InstrumentId],
        text: impl Fn(InstrumentId) -> Option<&'t [u8]>,
        out: &mut FieldWriter<'_>,
    ) -> Result<u32, WriteError> {
        let body = self.body(b"y")?;
        let entry = body.group(146).ok_or(WriteError::NoMessage)?;
        out.field(320, request.id).field(322, request.response);
        out.u64(560, 0);
        if let Some(total) = request.total.filter(|_| body.has(393)) {
            out.u64(393, total);
        }
        if body.has(893) {
            out.bool(893, request.is_last);
        }
        out.u64(146, instruments.len() as u64);
        let mut left_out = 0;
        for instrument in instruments {
            let known = table
                .instrument(*instrument)
                .ok_or(WriteError::Instrument)?;
            let mut fields = Fields::new(self, entry);
            fields.ordered(&known, |_| true, out);
            // It is behind all others.
            fields.text(58, text(*instrument).unwrap_or_default(), out);
            left_out += fields.left_out;
        }
        Ok(left_out)
    }

    /// Writes the body of f, SecurityStatus. `request` is SecurityStatusReqID(324), left out if
    /// empty.
    ///
    /// # Errors
    ///
    /// Returns a [`WriteError`] if the instrument does not exist, or the version does not have the
    /// status.
    pub fn status(
        &self,
        table: &impl Lookup,
        request: &[u8],
        event: &Event,
        out: &mut FieldWriter<'_>,
    ) -> Result<(), WriteError> {
        let body = self.body(b"f")?;
        let known = table
            .instrument(event.instrument)
            .ok_or(WriteError::Instrument)?;
        if !request.is_empty() {
            out.field(324, request);
        }
        names(&known.definition.name, |tag| body.has(tag), out);
        self.code(326, event.id, out)
    }

    /// Writes the body of h, TradingSessionStatus, of the session `id`, TradingSessionID(336).
    /// `request` is TradSesReqID(335), left out if empty.
    ///
    /// # Errors
    ///
    /// Returns a [`WriteError`] if the version does not have the session or the status.
    pub fn session_status(
        &self,
        request: &[u8],
        id: &[u8],
        event: &Event,
        out: &mut FieldWriter<'_>,
    ) -> Result<(), WriteError> {
        let _ = self.body(b"h")?;
        if !self.dictionary.fits(336, id) {
            return Err(WriteError::Value { tag: 336 });
        }
        if !request.is_empty() {
            out.field(335, request);
        }
        out.field(336, id);
        self.code(340, event.id, out)
    }

    fn code(&self, tag: u32, value: u64, out: &mut FieldWriter<'_>) -> Result<(), WriteError> {
        let mut digits = [0; 20];
        let len = int::write_u64(value, &mut digits);
        let text = digits.get(..len).unwrap_or_default();
        if !self.dictionary.fits(tag, text) {
            return Err(WriteError::Value { tag });
        }
        out.field(tag, text);
        Ok(())
    }
}

/// NoMarketSegments(1310): the markets of an instrument, with the rules of each.
const MARKETS: u32 = 1310;

/// The fields of a definition, besides its names.
const TAGS: [u32; 16] = [
    107, 167, 461, 15, 1301, 207, 1300, 200, 541, 1079, 202, 231, 969, 1148, 1149, 311,
];

/// A writer of the fields of definitions that a level of a message has.
struct Fields<'f> {
    to: &'f ToFix,
    level: Layout<'f>,
    left_out: u32,
}

impl<'f> Fields<'f> {
    const fn new(to: &'f ToFix, level: Layout<'f>) -> Self {
        Self {
            to,
            level,
            left_out: 0,
        }
    }

    /// Writes the wanted fields in the order of their tags.
    fn write(
        &mut self,
        known: &Instrument<'_>,
        is_wanted: impl Fn(u32) -> bool,
        out: &mut FieldWriter<'_>,
    ) {
        let mut tags = TAGS;
        tags.sort_unstable();
        let wanted = tags.into_iter().filter(|tag| is_wanted(*tag));
        wanted.for_each(|tag| self.one(tag, known, out));
    }

    /// Writes the names and the wanted fields in the order of the level.
    fn ordered(
        &mut self,
        known: &Instrument<'_>,
        is_wanted: impl Fn(u32) -> bool,
        out: &mut FieldWriter<'_>,
    ) {
        let mut tags = [0; TAGS.len() + 3];
        let all = [55, 48, 22].into_iter().chain(TAGS);
        tags.iter_mut().zip(all).for_each(|(to, tag)| *to = tag);
        let level = self.level;
        tags.sort_by_key(|tag| level.position(*tag).unwrap_or(usize::MAX));
        for tag in tags {
            match tag {
                55 | 48 | 22 if level.has(tag) => {
                    super::one_name(&known.definition.name, tag, out);
                }
                tag if is_wanted(tag) => self.one(tag, known, out),
                _ => {}
            }
        }
    }

    fn one(&mut self, tag: u32, known: &Instrument<'_>, out: &mut FieldWriter<'_>) {
        let of = &known.definition;
        match tag {
            107 => self.text(tag, of.description, out),
            167 => self.text(tag, of.security_type, out),
            461 => self.text(tag, of.cfi, out),
            15 => self.text(tag, of.currency, out),
            // SecurityExchange(207) if there is no MarketID(1301).
            1301 if self.level.has(1301) => self.text(tag, of.market, out),
            207 if !self.level.has(1301) => self.text(tag, of.market, out),
            1300 => self.text(tag, of.segment, out),
            200 => self.text(tag, of.maturity_month, out),
            202 => self.price(tag, of.strike, out),
            231 => self.price(tag, of.multiplier, out),
            969 => self.price(tag, of.tick, out),
            1148 => self.price(tag, of.low_limit, out),
            1149 => self.price(tag, of.high_limit, out),
            541 | 1079 => self.maturity(tag, of.maturity, out),
            _ => {}
        }
    }

    fn text(&mut self, tag: u32, value: &[u8], out: &mut FieldWriter<'_>) {
        if value.is_empty() {
            return;
        }
        match self.level.has(tag) && self.to.dictionary.fits(tag, value) {
            true => _ = out.field(tag, value),
            false => self.left_out += 1,
        }
    }

    fn price(&mut self, tag: u32, value: Price, out: &mut FieldWriter<'_>) {
        let Some(value) = value.to_decimal() else {
            return;
        };
        let mut digits = [0; Decimal::MAX_LEN];
        let len = value.write(&mut digits);
        self.text(tag, digits.get(..len).unwrap_or_default(), out);
    }

    /// Writes MaturityDate(541), and MaturityTime(1079) unless it is midnight.
    fn maturity(&mut self, tag: u32, nanos: u64, out: &mut FieldWriter<'_>) {
        if nanos == Event::NO_TIME {
            return;
        }
        let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        let mut text = [0; UtcTimestamp::MAX_LEN];
        UtcTimestamp::from_nanos(nanos).write(Precision::Seconds, &mut text);
        if tag == 541 {
            return self.text(tag, text.get(..8).unwrap_or_default(), out);
        }
        let mut time = *b"00:00:00Z";
        if let (Some(to), Some(from)) = (time.get_mut(..8), text.get(9..17)) {
            to.copy_from_slice(from);
        }
        if time != *b"00:00:00Z" {
            self.text(tag, &time, out);
        }
    }
}
