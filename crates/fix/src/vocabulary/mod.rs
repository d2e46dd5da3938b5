//! The words of the standard as constants: tags, MsgTypes and listed values of all versions. `cargo
//! xtask dict` makes them from the tables of the built-in dictionaries.

pub mod tag {
    //! Tag numbers by the standard's names, of FIX.4.0 to FIX.5.0SP2 and FIXT.1.1.
    //!
    //! A field that was renamed has a constant for each name.
    //!
    //! ```
    //! use fanfare_fix::tag;
    //!
    //! assert_eq!((tag::MSG_SEQ_NUM, tag::NO_MD_ENTRIES), (34, 268));
    //! assert_eq!((tag::ID_SOURCE, tag::SECURITY_ID_SOURCE), (22, 22));
    //! ```

    include!("tag.generated");

    /// The tag FanoutID(20001), Fanfare's own mark of a message to all consumers.
    pub const FANOUT_ID: u32 = 20001;

    /// The first of the tags that counterparties agree on among themselves. No dictionary knows all
    /// of these.
    pub const USER_TAGS: u32 = 5_000;

    /// Returns whether the tag belongs to the standard header, in any version of FIX
    /// (StandardHeader of FIX.4.0 to FIXT.1.1).
    #[inline]
    pub const fn is_header(tag: u32) -> bool {
        matches!(
            tag,
            8 | 9 | 34 | 35 | 43 | 49 | 50 | 52 | 56 | 57 | 90 | 91 | 97 | 115 | 116 | 122 | 128
                | 129 | 142..=145 | 212 | 213 | 347 | 369 | 370 | 627..=630 | 1128 | 1129 | 1156
        )
    }

    /// Returns whether the tag belongs to the standard trailer: SignatureLength(93), Signature(89)
    /// or CheckSum(10).
    #[inline]
    pub const fn is_trailer(tag: u32) -> bool {
        matches!(tag, 10 | 89 | 93)
    }
}

pub mod msg_type {
    //! MsgType(35) values by the standard's names, of FIX.4.0 to FIX.5.0SP2 and FIXT.1.1.
    //!
    //! ```
    //! use fanfare_fix::msg_type;
    //!
    //! assert_eq!(msg_type::MARKET_DATA_REQUEST, b"V");
    //! assert!(msg_type::is_session(msg_type::LOGON));
    //! ```

    include!("msg_type.generated");

    /// Returns whether the message belongs to the session layer of FIX.4.0 to FIXT.1.1:
    /// Heartbeat(0), TestRequest(1), ResendRequest(2), Reject(3), SequenceReset(4), Logout(5) or
    /// Logon(A).
    #[inline]
    pub const fn is_session(msg_type: &[u8]) -> bool {
        matches!(msg_type, [b'0'..=b'5' | b'A'])
    }
}

pub mod values {
    //! The listed values of fields by the standard's names: a module for each field.
    //!
    //! A constant has the type of the field in the newest version: `u8` for a character, for
    //! [`FieldWriter::char`](crate::codec::FieldWriter::char); `u64` for a number; `bool` for a
    //! Boolean; `&str` for text, and where the versions differ in their types. Where two versions
    //! use one name for two values, the newer value has the name, and the name of the older one
    //! ends with the last version that knows it.
    //!
    //! ```
    //! use fanfare_fix::values::{ord_type, security_type, session_reject_reason, side};
    //! use fanfare_fix::values::trade_report_trans_type;
    //!
    //! assert_eq!((side::BUY, ord_type::LIMIT), (b'1', b'2'));
    //! assert_eq!(session_reject_reason::REQUIRED_TAG_MISSING, 1);
    //! assert_eq!(security_type::FUTURE, "FUT");
    //! assert_eq!(trade_report_trans_type::CANCEL, "1");
    //! assert_eq!(trade_report_trans_type::CANCEL_FIX43, "C");
    //! ```

    include!("values.generated");
}
