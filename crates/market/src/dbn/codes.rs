//! The conversion of FIX's codes of statuses and entries to DBN's.

use crate::event::entry;

/// The values of `action` of a status.
mod action {
    pub(super) const PRE_OPEN: u16 = 1;
    pub(super) const PRE_CROSS: u16 = 2;
    pub(super) const CROSS: u16 = 4;
    pub(super) const ROTATION: u16 = 5;
    pub(super) const NEW_PRICE_INDICATION: u16 = 6;
    pub(super) const TRADING: u16 = 7;
    pub(super) const HALT: u16 = 8;
    pub(super) const PAUSE: u16 = 9;
    pub(super) const PRE_CLOSE: u16 = 11;
    pub(super) const CLOSE: u16 = 12;
    pub(super) const POST_CLOSE: u16 = 13;
    pub(super) const NOT_AVAILABLE: u16 = 15;
}

/// Returns `action` of SecurityTradingStatus(326), or of TradSesStatus(340) for a session, or
/// `None` for those that DBN does not have.
pub(super) const fn status(code: u64, is_of_session: bool) -> Option<u16> {
    if is_of_session {
        return Some(match code {
            1 => action::HALT,
            2 => action::TRADING,
            3 => action::CLOSE,
            4 => action::PRE_OPEN,
            5 => action::PRE_CLOSE,
            _ => return None,
        });
    }
    Some(match code {
        // Opening delay.
        1 => action::PAUSE,
        2 => action::HALT,
        // Resume, ready to trade, fast market.
        3 | 17 | 23 => action::TRADING,
        // No open, end of session, not traded on this market.
        4 | 18 | 19 => action::NOT_AVAILABLE,
        5 | 6 => action::NEW_PRICE_INDICATION,
        21 => action::PRE_OPEN,
        22 => action::ROTATION,
        24 => action::PRE_CROSS,
        25 => action::CROSS,
        26 => action::POST_CLOSE,
        _ => return None,
    })
}

/// Returns `is_trading` of an action, or `None` if the action leaves it open.
pub(super) const fn is_trading(of: u16) -> Option<bool> {
    match of {
        action::TRADING | action::CROSS | action::ROTATION => Some(true),
        action::NEW_PRICE_INDICATION => None,
        _ => Some(false),
    }
}

/// The codes of a volume and a price that are specific to the venue.
const VENUE_VOLUME: u16 = 10_001;
const VENUE_PRICE: u16 = 10_002;

/// Returns `stat_type` and `stat_flags` of MDEntryType(269). Types that DBN does not have are
/// volumes and prices of the venue, with MDEntryType in the flags.
pub(super) const fn statistic(entry: u8, has_price: bool) -> (u16, u8) {
    let known = match entry {
        b'4' => 1,
        b'6' => 3,
        b'8' => 4,
        b'7' => 5,
        b'O' => 7,
        b'N' => 8,
        b'C' => 9,
        b'5' => 11,
        b'9' => 13,
        b'Q' => 16,
        _ if has_price => return (VENUE_PRICE, entry),
        _ => return (VENUE_VOLUME, entry),
    };
    (known, 0)
}

/// Returns the side of an entry.
pub(super) const fn side(of: u8) -> u8 {
    match of {
        entry::BID => b'B',
        entry::OFFER => b'A',
        _ => b'N',
    }
}

/// Returns SecurityTradingStatus(326) of an `action`, or `None` for those that it does not have.
pub(super) const fn status_of(of: u16) -> Option<u16> {
    Some(match of {
        action::PAUSE => 1,
        action::HALT => 2,
        action::NEW_PRICE_INDICATION => 5,
        action::TRADING => 17,
        action::NOT_AVAILABLE | action::CLOSE => 18,
        action::PRE_OPEN => 21,
        action::ROTATION => 22,
        action::PRE_CROSS => 24,
        action::CROSS => 25,
        action::POST_CLOSE => 26,
        _ => return None,
    })
}

/// Returns MDEntryType(269) of `stat_type` and `stat_flags`, or `None` for those that it does not
/// have.
pub(super) const fn entry_of(stat_type: u16, flags: u8) -> Option<u8> {
    Some(match stat_type {
        1 => b'4',
        3 => b'6',
        4 => b'8',
        5 => b'7',
        7 => b'O',
        8 => b'N',
        9 => b'C',
        11 => b'5',
        13 => b'9',
        16 => b'Q',
        VENUE_VOLUME | VENUE_PRICE if flags != 0 => flags,
        // A cleared volume.
        6 => b'B',
        _ => return None,
    })
}
