// From builtin:complex by fanfare dds idl --rust.
fanfare_dds::cdr_struct! {
    #[derive(Debug, Clone, PartialEq)]
    #[allow(non_snake_case, non_camel_case_types)]
    pub struct MarketData_MDEntries: "Fanfare::MarketData_MDEntries" {
        present: u64,
        MDUpdateAction: u32,
        MDPriceLevel: u32,
        MDEntryType: String,
        OpenCloseSettleFlag: u32,
        SecurityIDSource: u32,
        SecurityID: u32,
        RptSeq: u32,
        MDEntryPx: f64,
        MDEntryTime: u32,
        MDEntrySize: i32,
        NumberOfOrders: u32,
        TradingSessionID: String,
        NetChgPrevDay: f64,
        TradeVolume: u32,
        TradeCondition: String,
        TickDirection: String,
        QuoteCondition: String,
        AggressorSide: u32,
        MatchEventIndicator: String,
    }
}

fanfare_dds::cdr_struct! {
    #[derive(Debug, Clone, PartialEq)]
    #[allow(non_snake_case, non_camel_case_types)]
    pub struct MarketData: "Fanfare::MarketData" {
        SecurityID: u32,
        ApplVerID: String,
        MessageType: String,
        SenderCompID: String,
        MsgSeqNum: u32,
        SendingTime: u32,
        TradeDate: u32,
        MDEntries: Vec<MarketData_MDEntries>,
    }
}

fanfare_dds::cdr_struct! {
    #[derive(Debug, Clone, PartialEq)]
    #[allow(non_snake_case, non_camel_case_types)]
    pub struct QuoteRequest_RelatedSym: "Fanfare::QuoteRequest_RelatedSym" {
        present: u64,
        Symbol: String,
        OrderQty: u64,
        Side: u32,
        TransactTime: u64,
        QuoteType: u32,
        SecurityID: u32,
        SecurityIDSource: u32,
    }
}

fanfare_dds::cdr_struct! {
    #[derive(Debug, Clone, PartialEq)]
    #[allow(non_snake_case, non_camel_case_types)]
    pub struct QuoteRequest: "Fanfare::QuoteRequest" {
        SecurityID: u32,
        present: u64,
        ApplVerID: String,
        MessageType: String,
        SenderCompID: String,
        MsgSeqNum: u32,
        SendingTime: u32,
        QuoteReqID: String,
        RelatedSym: Vec<QuoteRequest_RelatedSym>,
    }
}

fanfare_dds::cdr_struct! {
    #[derive(Debug, Clone, PartialEq)]
    #[allow(non_snake_case, non_camel_case_types)]
    pub struct Done: "Fanfare::Done" {
        MessageType: String,
    }
}
