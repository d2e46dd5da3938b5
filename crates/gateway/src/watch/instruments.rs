//! The list of instruments, with their states.

use super::error::{NO_MARKET, NoBook};
use super::market::Market;
use super::page::Page;
use super::{Watch, render};
use fanfare_market::event::InstrumentId;
use fanfare_market::instruments::Lookup;
use serde_json::{Map, Value, json};

/// The most instruments that are examined while the reading thread waits.
const AT_ONCE: u32 = 4_096;

/// The selection of instruments.
#[derive(Debug, Clone, Default)]
pub(crate) struct WantedInstruments {
    /// A prefix of the symbol, or of the ID of an instrument without a symbol.
    pub(crate) prefix: Option<String>,
    /// The name of a state.
    pub(crate) state: Option<String>,
    pub(crate) feed: Option<String>,
}

impl WantedInstruments {
    fn takes(&self, market: &Market, instrument: InstrumentId) -> bool {
        let Some(known) = market.directory().instrument(instrument) else {
            return false;
        };
        let name = known.definition.name;
        let state = market.state(instrument);
        let state = state.map_or(render::UNHEARD, render::state_name);
        let feed = render::feed_of(&market.feeds, instrument).map(|feed| feed.name.as_str());
        let is = |wanted: &Option<String>, own: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == own)
        };
        let begins = |prefix: &str| render::begins(name.symbol, name.id, prefix);
        self.prefix.as_deref().is_none_or(begins)
            && is(&self.state, Some(state))
            && is(&self.feed, feed)
    }
}

impl Watch {
    /// Returns a page of the instruments that match, in the order of their numbers, as of now or
    /// later.
    ///
    /// # Errors
    /// Returns an error if there is no market, a value is invalid, or the instruments are not known
    /// yet.
    pub(crate) fn instruments(
        &self,
        wanted: &WantedInstruments,
        page: &Page,
    ) -> Result<Value, NoBook> {
        let after = page.after.as_ref().map(|_| page.after_number());
        let from = after
            .transpose()
            .map_err(NoBook::Asked)?
            .map_or(0, |after| after.saturating_add(1));
        let from = u32::try_from(from).unwrap_or(u32::MAX);
        let (mut rows, mut total, mut has_more) = (Vec::new(), 0_u64, false);
        let mut next = 0_u32;
        let mut first = Some(self.caught_up()?);
        loop {
            // The reading thread goes on between two parts.
            let market = first.take().or_else(|| self.0.market()).ok_or(NO_MARKET)?;
            let bound = market.directory().bound();
            let end = next.saturating_add(AT_ONCE).min(bound);
            for number in next..end {
                let instrument = InstrumentId(number);
                if !wanted.takes(&market, instrument) {
                    continue;
                }
                total += 1;
                if number < from {
                    continue;
                }
                match rows.len() < page.limit {
                    true => rows.push((number, row(&market, instrument))),
                    false => has_more = true,
                }
            }
            next = end;
            if next >= bound {
                break;
            }
        }
        let last = rows.last().filter(|_| has_more);
        let next = last.map(|(number, _)| number.to_string());
        let rows: Vec<_> = rows
            .into_iter()
            .map(|(_, row)| Value::Object(row))
            .collect();
        Ok(json!({"total": total, "next": next, "instruments": rows}))
    }
}

/// Returns the row of an instrument.
pub(super) fn row(market: &Market, instrument: InstrumentId) -> Map<String, Value> {
    let mut row = render::names(instrument, market.directory(), &market.feeds);
    let known = market.directory().instrument(instrument);
    let seen = market.view.get(instrument);
    let state = render::state(market.state(instrument));
    let own = seen.map(|seen| &seen.own);
    let status = seen.and_then(|seen| seen.status);
    let status = status
        .map(|event| event.id)
        .or(known.map(|known| known.status.into()));
    let rpt_seq = own.map(|own| own.rpt_seq).filter(|number| *number != 0);
    let event = own.map(|own| own.number).filter(|number| *number != 0);
    let [state, lacks] = state;
    row.extend(render::object([
        state,
        lacks,
        ("rpt_seq", json!(rpt_seq)),
        ("event", json!(event)),
        (
            "updated",
            json!(own.and_then(|own| render::time(own.received))),
        ),
        ("trading", json!(status.filter(|status| *status != 0))),
    ]));
    row
}
