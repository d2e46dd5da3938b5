//! The folders of definitions, and the set-up of the server for each.

use super::{Suite, listed};
use std::path::{Path, PathBuf};

/// The variables with the folder of QuickFIX's sources, and that of the definitions of QuickFIX/n.
const SOURCES: [&str; 2] = ["QUICKFIX_SOURCES", "QUICKFIX_N_DEFINITIONS"];

/// The server's dictionaries, and its stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setup {
    /// The dictionaries among the definitions, and a store on disk.
    Files,
    /// Built-in tables and a store in memory.
    BuiltIn,
}

fn sources(variable: &str) -> PathBuf {
    let sources = std::env::var_os(variable);
    sources
        .unwrap_or_else(|| panic!("no {variable}: make conformance"))
        .into()
}

/// Returns all of QuickFIX's definitions, with both set-ups.
pub(crate) fn quickfix() -> Vec<Suite> {
    let sources = sources(SOURCES[0]);
    let folders = listed(&sources.join("test/definitions/server"));
    let folders: Vec<_> = folders
        .into_iter()
        .filter(|path| path.is_dir() && !path.ends_with("future"))
        .collect();
    assert!(folders.len() >= 8, "folders of definitions are missing");
    let suite = |setup, folder: &PathBuf| Suite {
        name: named(folder, setup),
        folder: folder.clone(),
        settings: settings(setup, &sources.join("spec"), &named(folder, setup)),
        in_days: false,
        least: 50,
        others: &[],
    };
    let both = |folder| [Setup::Files, Setup::BuiltIn].map(|setup| suite(setup, folder));
    folders.iter().flat_map(both).collect()
}

/// Returns QuickFIX/n's definitions: those of each version with both set-ups, and those of its
/// switches.
pub(crate) fn quickfix_n() -> Vec<Suite> {
    let sources = sources(SOURCES[1]);
    let folder = |name: &str| sources.join("definitions").join(name);
    let suite = |name: &str, setup, more: &str, least| {
        let folder = folder(name);
        let name = format!("n-{}", named(&folder, setup));
        let settings = settings(setup, &sources.join("spec"), &name) + more;
        Suite {
            name,
            folder,
            settings,
            in_days: true,
            least,
            others: OTHERS_OF_N,
        }
    };
    let versions = [
        "fix40", "fix41", "fix42", "fix43", "fix44", "fix50", "fix50sp1", "fix50sp2",
    ];
    let mut suites = Vec::new();
    for version in versions {
        suites.push(suite(version, Setup::Files, "", 55));
        suites.push(suite(version, Setup::BuiltIn, "", 55));
    }
    suites.push(suite("validate", Setup::Files, EMPTY_VALUES, 1));
    for (folder, version, more) in SWITCHES_OF_N {
        let mut suite = suite(folder, Setup::BuiltIn, "", 1);
        suite.name = format!("n-{}", folder.replace('/', "-"));
        suite.settings = format!("{HEAD}{more}[SESSION]\nBeginString={version}\n");
        suites.push(suite);
    }
    suites
}

fn named(folder: &Path, setup: Setup) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}-{setup:?}")
}

const HEAD: &str = "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\n\
    SocketAcceptPort=0\nSocketReuseAddress=Y\nStartTime=00:00:00\nEndTime=00:00:00\n\
    SenderCompID=ISLD\nTargetCompID=TW\n";

/// A second counterparty, whose fields may be empty.
const EMPTY_VALUES: &str = "[SESSION]\nBeginString=FIX.4.4\nValidateFieldsHaveValues=N\n\
    TargetCompID=NO_CHECK_FIELDS_HAVE_VALUES\n";

/// A folder, its version and its settings.
const SWITCHES_OF_N: [(&str, &str, &str); 4] = [
    (
        "misc",
        "FIX.4.2",
        "ResetOnLogon=Y\nSenderSubID=SENDERSUB\nSenderLocationID=SENDERLOC\n\
         TargetSubID=TARGETSUB\nTargetLocationID=TARGETLOC\nEnableLastMsgSeqNumProcessed=Y\n\
         MaxMessagesInResendRequest=2500\nSendLogoutBeforeDisconnectFromTimeout=Y\n",
    ),
    (
        "enhancedresend",
        "FIX.4.4",
        "ResetOnLogon=Y\nRequiresOrigSendingTime=N\nEnableLastMsgSeqNumProcessed=Y\n\
         MaxMessagesInResendRequest=10\n",
    ),
    ("fix44noreset", "FIX.4.4", ""),
    (
        "nextexpectedseqnum/fix44",
        "FIX.4.4",
        "SendNextExpectedMsgSeqNum=Y\nResetOnDisconnect=Y\n",
    ),
];

/// The definitions of QuickFIX/n with other expectations.
const OTHERS_OF_N: &[(&str, &str)] = &[
    (
        "2i_BeginStringValueUnexpected",
        "the text names the BeginString",
    ),
    (
        "fix42/2q_MsgTypeNotValid",
        "371=35 beside 373=11 in FIX.4.2",
    ),
    ("fix50/2r_UnregisteredMsgType", NO_1137),
    ("fix50sp1/2r_UnregisteredMsgType", NO_1137),
    ("fix50sp2/2r_UnregisteredMsgType", NO_1137),
    ("ReceiveXmlMessage", APPLICATION),
    ("ComponentFieldRequired", APPLICATION),
    ("InternationalCharacters", APPLICATION),
    ("ResendRepeatingGroup", APPLICATION),
    ("issue309_GapFillSkip", APPLICATION),
    (
        "issue146_MissingGroupDelimiter",
        "373=99 and a text of its own",
    ),
    ("SessionReset", NO_141),
    ("SessionResetAfterDisconnect", NO_141),
    ("FIX42MaxMessagesInResend", COUNTS_EARLY),
    ("ResendRequestNonzeroEnd", COUNTS_EARLY),
    ("gapfill", COUNTS_EARLY),
    ("no-repeat-requests", COUNTS_EARLY),
    ("real-time-during-resend", COUNTS_EARLY),
    ("2c_NextExpectedMsgSeqNumTooLow", SETS_NUMBERS),
    ("ResetSeqNumFlagAndNextExpectedMsgSeqNum", SETS_NUMBERS),
    ("2b_NextExpectedMsgSeqNumTooHigh", SETS_NUMBERS),
];

const NO_1137: &str = "BusinessMessageReject(j) without 1137";
const APPLICATION: &str = "its application answers other messages";
const NO_141: &str = "ResetSeqNumFlag(141) is not returned";
const COUNTS_EARLY: &str = "369 counts a message that came too early, before it is processed";
const SETS_NUMBERS: &str = "sets the numbers of the running server";

fn settings(setup: Setup, spec: &Path, test: &str) -> String {
    let mut text = format!("{HEAD}ResetOnLogon=Y\n");
    let store = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("definitions-{test}"));
    if setup == Setup::Files {
        text += &format!("FileStorePath={}\n", store.display());
    }
    let file = |key: &str, name: &str| match setup {
        Setup::Files => format!("{key}={}/{name}.xml\n", spec.display()),
        Setup::BuiltIn => String::new(),
    };
    for minor in 0..=4 {
        text += &format!("[SESSION]\nBeginString=FIX.4.{minor}\n");
        text += &file("DataDictionary", &format!("FIX4{minor}"));
    }
    text += "[SESSION]\nBeginString=FIXT.1.1\nDefaultApplVerID=FIX.5.0\n";
    text += &file("TransportDataDictionary", "FIXT11");
    text += &file("AppDataDictionary", "FIX50");
    text += &file("AppDataDictionary.FIX.5.0SP1", "FIX50SP1");
    text + &file("AppDataDictionary.FIX.5.0SP2", "FIX50SP2")
}
