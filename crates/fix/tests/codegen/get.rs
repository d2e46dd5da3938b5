//! Generated readers against [`FieldSet`]'s lookups by tag with the dictionary's groups, on random
//! messages.

use fanfare_fix::codec::{Decoder, FieldSet};
use fanfare_fix::dict::{Dictionary, Schema, Version};
use fanfare_fix::typed::Listed;
use proptest::prelude::*;
use std::convert::identity;

use super::fix44::{
    self, AllocsEntry, ExecutionReport, Header, MDEntriesEntry, MDEntryTypesEntry,
    MarketDataRequest, MarketDataSnapshotFullRefresh, Messages, NestedPartyIDsEntry,
    NestedPartySubIDsEntry, NewOrderSingle, PartyIDsEntry, PartySubIDsEntry,
};
use super::generate::{Random, spoil, valid};
use super::message;

/// Methods of a reader that return what a lookup with this tag does.
macro_rules! same {
    ($reader:expr, $set:expr; $($method:ident $lookup:ident $tag:literal,)*) => {
        $(assert_eq!($reader.$method(), $set.$lookup($tag), stringify!($method));)*
    };
}

/// Methods that return an enum (`Some` for required fields, `identity` for others), or an error
/// where the lookup has no value of its list.
macro_rules! listed {
    ($reader:expr, $set:expr; $($method:ident $wrap:ident $tag:literal,)*) => {
        $(match $reader.$method().map($wrap) {
            Ok(found) => {
                let bytes = found.as_ref().map(Listed::wire);
                assert_eq!(bytes, $set.get($tag), stringify!($method));
            }
            Err(error) => {
                let field = $set.find($tag);
                assert_eq!(error.tag, $tag, stringify!($method));
                assert!(field.is_none_or(|field| field.offset == error.offset));
            }
        })*
    };
}

/// Groups: the entries of both are compared by a function.
macro_rules! groups {
    ($reader:expr, $set:expr; $($method:ident $tag:literal $compare:expr,)*) => {
        $(match ($reader.$method(), $set.group($tag)) {
            (Ok(entries), Ok(group)) => {
                assert_eq!(entries.len(), group.len(), stringify!($method));
                for (entry, set) in entries.zip(group) {
                    $compare(&entry, &set);
                }
            }
            (found, expected) => assert_eq!(found.err(), expected.err(), stringify!($method)),
        })*
    };
}

fn header(header: &Header<'_>, set: &FieldSet<'_>) {
    same!(header, set;
        begin_string str 8, body_length u64 9, msg_type str 35, sender_comp_id str 49,
        msg_seq_num u64 34, sending_time timestamp 52, poss_dup_flag opt_bool 43,
        orig_sending_time opt_timestamp 122, on_behalf_of_comp_id opt_str 115,
    );
    groups!(header, set; hops 627 |hop: &fix44::HopsEntry<'_>, set: &FieldSet<'_>| {
        same!(hop, set; hop_comp_id opt_str 628, hop_sending_time opt_timestamp 629,);
    },);
}

fn party(party: &PartyIDsEntry<'_>, set: &FieldSet<'_>) {
    same!(party, set; party_id opt_str 448,);
    listed!(party, set; party_id_source identity 447, party_role identity 452,);
    groups!(party, set; party_sub_ids 802 party_sub,);
}

fn party_sub(sub: &PartySubIDsEntry<'_>, set: &FieldSet<'_>) {
    same!(sub, set; party_sub_id opt_str 523,);
    listed!(sub, set; party_sub_id_type identity 803,);
}

fn alloc(alloc: &AllocsEntry<'_>, set: &FieldSet<'_>) {
    same!(alloc, set; alloc_account opt_str 79, alloc_qty opt_decimal 80,);
    groups!(alloc, set; nested_party_ids 539 nested_party,);
}

fn nested_party(party: &NestedPartyIDsEntry<'_>, set: &FieldSet<'_>) {
    same!(party, set; nested_party_id opt_str 524, nested_party_role opt_i64 538,);
    groups!(party, set; nested_party_sub_ids 804 nested_party_sub,);
}

fn nested_party_sub(sub: &NestedPartySubIDsEntry<'_>, set: &FieldSet<'_>) {
    same!(sub, set; nested_party_sub_id opt_str 545, nested_party_sub_id_type opt_i64 805,);
}

fn order(order: &NewOrderSingle<'_>, set: &FieldSet<'_>) {
    header(&order.header(), set);
    same!(order, set;
        cl_ord_id str 11, symbol str 55, account opt_str 1, transact_time timestamp 60,
        order_qty opt_decimal 38, price opt_decimal 44, maturity_month_year opt_str 200,
        maturity_date opt_str 541, solicited_flag opt_bool 377, coupon_rate opt_decimal 223,
        expire_time opt_timestamp 126, text opt_str 58,
    );
    listed!(order, set;
        side Some 54, ord_type Some 40, time_in_force identity 59, handl_inst identity 21,
    );
    groups!(order, set; party_ids 453 party, allocs 78 alloc,);
}

fn report(report: &ExecutionReport<'_>, set: &FieldSet<'_>) {
    header(&report.header(), set);
    same!(report, set;
        order_id str 37, exec_id str 17, leaves_qty decimal 151, cum_qty decimal 14,
        avg_px decimal 6, last_px opt_decimal 31, cl_ord_id opt_str 11, text opt_str 58,
    );
    listed!(report, set;
        exec_type Some 150, ord_status Some 39, side Some 54,
        exec_restatement_reason identity 378, position_effect identity 77,
    );
    groups!(report, set; party_ids 453 party,);
}

fn request(request: &MarketDataRequest<'_>, set: &FieldSet<'_>) {
    same!(request, set; md_req_id str 262, market_depth i64 264, aggregated_book opt_bool 266,);
    listed!(request, set; subscription_request_type Some 263,);
    listed!(request, set; md_update_type identity 265,);
    groups!(request, set; md_entry_types 267 entry_type,);
}

fn entry_type(entry: &MDEntryTypesEntry<'_>, set: &FieldSet<'_>) {
    listed!(entry, set; md_entry_type Some 269,);
}

fn entry(entry: &MDEntriesEntry<'_>, set: &FieldSet<'_>) {
    same!(entry, set;
        md_entry_px opt_decimal 270, md_entry_size opt_decimal 271, currency opt_str 15,
        number_of_orders opt_i64 346, md_entry_date opt_str 272, md_entry_time opt_str 273,
    );
    listed!(entry, set; md_entry_type Some 269, tick_direction identity 274,);
}

fn snapshot(snapshot: &MarketDataSnapshotFullRefresh<'_>, set: &FieldSet<'_>) {
    same!(snapshot, set; symbol str 55, md_req_id opt_str 262,);
    groups!(snapshot, set; md_entries 268 entry,);
}

fn compare(dictionary: &Dictionary, fields: &[(String, String)]) {
    let text: String = fields
        .iter()
        .map(|(tag, value)| format!("{tag}={value}|"))
        .collect();
    let bytes = message("FIX.4.4", &text);
    let mut decoder = Decoder::new();
    // Random changes may break a data field.
    let Ok(received) = decoder.decode(&bytes) else {
        return;
    };
    let set = *received.with_groups(dictionary);
    match fix44::crack(&received) {
        Some(Messages::NewOrderSingle(found)) => order(&found, &set),
        Some(Messages::ExecutionReport(found)) => report(&found, &set),
        Some(Messages::MarketDataRequest(found)) => request(&found, &set),
        Some(Messages::MarketDataSnapshotFullRefresh(found)) => snapshot(&found, &set),
        None => panic!("{text}"),
    }
}

/// FIX.4.4 with the messages that have readers here.
fn schema() -> Schema {
    let mut schema = Dictionary::built_in(Version::Fix44).schema().clone();
    schema
        .messages
        .retain(|msg_type, _| ["D", "8", "V", "W"].contains(&&**msg_type));
    schema
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn readers_return_what_lookups_do(seed in any::<u64>()) {
        let dictionary = Dictionary::new(schema()).unwrap();
        let mut random = Random(fastrand::Rng::with_seed(seed));
        for _ in 0..8 {
            let mut fields = valid(dictionary.schema(), &mut random);
            compare(&dictionary, &fields);
            for _ in 0..4 {
                spoil(dictionary.schema(), &mut random, &mut fields);
                compare(&dictionary, &fields);
            }
        }
    }
}
