//! MsgType(35) values by the standard's names, those that the engine itself uses.

macro_rules! msg_types {
    ($($name:ident = $value:literal $message:literal,)*) => {
        $(
            #[doc = $message]
            pub const $name: &[u8] = $value;
        )*
    };
}

msg_types! {
    HEARTBEAT = b"0" "Heartbeat(0)",
    TEST_REQUEST = b"1" "TestRequest(1)",
    RESEND_REQUEST = b"2" "ResendRequest(2)",
    REJECT = b"3" "Reject(3)",
    SEQUENCE_RESET = b"4" "SequenceReset(4)",
    LOGOUT = b"5" "Logout(5)",
    EXECUTION_REPORT = b"8" "ExecutionReport(8)",
    LOGON = b"A" "Logon(A)",
    EMAIL = b"C" "Email(C)",
    NEW_ORDER_SINGLE = b"D" "NewOrderSingle(D)",
    MARKET_DATA_REQUEST = b"V" "MarketDataRequest(V)",
    MARKET_DATA_SNAPSHOT = b"W" "MarketDataSnapshotFullRefresh(W)",
    MARKET_DATA_INCREMENTAL = b"X" "MarketDataIncrementalRefresh(X)",
    SECURITY_DEFINITION = b"d" "SecurityDefinition(d)",
    BUSINESS_MESSAGE_REJECT = b"j" "BusinessMessageReject(j)",
    XML_MESSAGE = b"n" "XMLnonFIX(n)",
}

/// Whether the message belongs to the session layer (in 4.0 to FIXT.1.1): Heartbeat, TestRequest,
/// ResendRequest, Reject, SequenceReset, Logout, Logon.
#[inline]
pub const fn is_session(msg_type: &[u8]) -> bool {
    matches!(msg_type, [b'0'..=b'5' | b'A'])
}
