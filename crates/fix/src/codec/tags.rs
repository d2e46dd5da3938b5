//! Tag numbers by the standard's names, those that the engine and its examples use.

macro_rules! tags {
    ($($name:ident = $number:literal $field:literal,)*) => {
        $(
            #[doc = concat!($field, "(", $number, ")")]
            pub const $name: u32 = $number;
        )*
    };
}

tags! {
    AVG_PX = 6 "AvgPx",
    BEGIN_SEQ_NO = 7 "BeginSeqNo",
    BEGIN_STRING = 8 "BeginString",
    BODY_LENGTH = 9 "BodyLength",
    CHECK_SUM = 10 "CheckSum",
    CL_ORD_ID = 11 "ClOrdID",
    CUM_QTY = 14 "CumQty",
    END_SEQ_NO = 16 "EndSeqNo",
    EXEC_ID = 17 "ExecID",
    EXEC_TRANS_TYPE = 20 "ExecTransType",
    HANDL_INST = 21 "HandlInst",
    MSG_SEQ_NUM = 34 "MsgSeqNum",
    MSG_TYPE = 35 "MsgType",
    NEW_SEQ_NO = 36 "NewSeqNo",
    ORDER_ID = 37 "OrderID",
    ORDER_QTY = 38 "OrderQty",
    ORD_STATUS = 39 "OrdStatus",
    ORD_TYPE = 40 "OrdType",
    POSS_DUP_FLAG = 43 "PossDupFlag",
    PRICE = 44 "Price",
    REF_SEQ_NUM = 45 "RefSeqNum",
    SENDER_COMP_ID = 49 "SenderCompID",
    SENDER_SUB_ID = 50 "SenderSubID",
    SENDING_TIME = 52 "SendingTime",
    SIDE = 54 "Side",
    SYMBOL = 55 "Symbol",
    TARGET_COMP_ID = 56 "TargetCompID",
    TARGET_SUB_ID = 57 "TargetSubID",
    TEXT = 58 "Text",
    TIME_IN_FORCE = 59 "TimeInForce",
    TRANSACT_TIME = 60 "TransactTime",
    SIGNATURE = 89 "Signature",
    SECURE_DATA_LEN = 90 "SecureDataLen",
    SECURE_DATA = 91 "SecureData",
    SIGNATURE_LENGTH = 93 "SignatureLength",
    RAW_DATA_LENGTH = 95 "RawDataLength",
    RAW_DATA = 96 "RawData",
    POSS_RESEND = 97 "PossResend",
    ENCRYPT_METHOD = 98 "EncryptMethod",
    HEART_BT_INT = 108 "HeartBtInt",
    TEST_REQ_ID = 112 "TestReqID",
    ON_BEHALF_OF_COMP_ID = 115 "OnBehalfOfCompID",
    ON_BEHALF_OF_SUB_ID = 116 "OnBehalfOfSubID",
    ORIG_SENDING_TIME = 122 "OrigSendingTime",
    GAP_FILL_FLAG = 123 "GapFillFlag",
    DELIVER_TO_COMP_ID = 128 "DeliverToCompID",
    DELIVER_TO_SUB_ID = 129 "DeliverToSubID",
    RESET_SEQ_NUM_FLAG = 141 "ResetSeqNumFlag",
    SENDER_LOCATION_ID = 142 "SenderLocationID",
    TARGET_LOCATION_ID = 143 "TargetLocationID",
    ON_BEHALF_OF_LOCATION_ID = 144 "OnBehalfOfLocationID",
    DELIVER_TO_LOCATION_ID = 145 "DeliverToLocationID",
    NO_RELATED_SYM = 146 "NoRelatedSym",
    HEADLINE = 148 "Headline",
    EXEC_TYPE = 150 "ExecType",
    LEAVES_QTY = 151 "LeavesQty",
    XML_DATA_LEN = 212 "XmlDataLen",
    XML_DATA = 213 "XmlData",
    MD_REQ_ID = 262 "MDReqID",
    SUBSCRIPTION_REQUEST_TYPE = 263 "SubscriptionRequestType",
    MARKET_DEPTH = 264 "MarketDepth",
    NO_MD_ENTRY_TYPES = 267 "NoMDEntryTypes",
    NO_MD_ENTRIES = 268 "NoMDEntries",
    MD_ENTRY_TYPE = 269 "MDEntryType",
    MD_ENTRY_PX = 270 "MDEntryPx",
    MESSAGE_ENCODING = 347 "MessageEncoding",
    LAST_MSG_SEQ_NUM_PROCESSED = 369 "LastMsgSeqNumProcessed",
    ON_BEHALF_OF_SENDING_TIME = 370 "OnBehalfOfSendingTime",
    REF_TAG_ID = 371 "RefTagID",
    REF_MSG_TYPE = 372 "RefMsgType",
    SESSION_REJECT_REASON = 373 "SessionRejectReason",
    BUSINESS_REJECT_REASON = 380 "BusinessRejectReason",
    MAX_MESSAGE_SIZE = 383 "MaxMessageSize",
    TEST_MESSAGE_INDICATOR = 464 "TestMessageIndicator",
    USERNAME = 553 "Username",
    PASSWORD = 554 "Password",
    NO_HOPS = 627 "NoHops",
    HOP_COMP_ID = 628 "HopCompID",
    HOP_SENDING_TIME = 629 "HopSendingTime",
    HOP_REF_ID = 630 "HopRefID",
    NEXT_EXPECTED_MSG_SEQ_NUM = 789 "NextExpectedMsgSeqNum",
    APPL_VER_ID = 1128 "ApplVerID",
    CSTM_APPL_VER_ID = 1129 "CstmApplVerID",
    DEFAULT_APPL_VER_ID = 1137 "DefaultApplVerID",
    APPL_EXT_ID = 1156 "ApplExtID",
    FANOUT_ID = 20001 "FanoutID, Fanfare's own mark: to all consumers",
}

/// Whether the tag belongs to the standard header, in any version of FIX (StandardHeader of
/// FIX.4.0 to FIXT.1.1).
#[inline]
pub const fn is_header(tag: u32) -> bool {
    matches!(
        tag,
        8 | 9 | 34 | 35 | 43 | 49 | 50 | 52 | 56 | 57 | 90 | 91 | 97 | 115 | 116 | 122 | 128 | 129
            | 142..=145 | 212 | 213 | 347 | 369 | 370 | 627..=630 | 1128 | 1129 | 1156
    )
}

/// Whether the tag belongs to the standard trailer: SignatureLength(93), Signature(89),
/// CheckSum(10).
#[inline]
pub const fn is_trailer(tag: u32) -> bool {
    matches!(tag, 10 | 89 | 93)
}
