//! The options of librdkafka.

#[cfg(feature = "kafka")]
use rdkafka::config::ClientConfig;
#[cfg(feature = "kafka")]
use rdkafka::error::KafkaError;

/// Returns why the library does not accept an option, if it does not.
#[cfg(feature = "kafka")]
pub(super) fn fault(key: &str, value: &str) -> Option<String> {
    let made = ClientConfig::new().set(key, value).create_native_config();
    match made.err()? {
        KafkaError::ClientConfig(_, what, key, _) => Some(words(&key, &what)),
        KafkaError::Nul(_) => Some("the name or the value contains a NUL".to_owned()),
        error => Some(error.to_string()),
    }
}

/// Returns no fault, because a configuration with a topic is refused.
#[cfg(not(feature = "kafka"))]
pub(super) const fn fault(_: &str, _: &str) -> Option<String> {
    None
}

/// Returns the library's words about an option, unless they may have its value, which may be
/// secret.
#[cfg(feature = "kafka")]
pub(super) fn words(key: &str, what: &str) -> String {
    let of_names = ["No such configuration property", "Configuration property"];
    match of_names.iter().any(|begin| what.starts_with(begin)) {
        true => what.to_owned(),
        false => format!("the value of `{key}` is not valid, or this build does not support it"),
    }
}

#[cfg(all(test, feature = "kafka"))]
mod tests {
    use super::*;

    #[test]
    fn options_that_the_library_refuses_have_a_fault_without_their_value() {
        assert_eq!(fault("linger.ms", "7"), None);
        for (key, value, why) in [
            ("ssl.key.password", "secret", "not supported in this build"),
            ("no.such.option", "secret", "No such configuration property"),
            ("linger.ms", "secret", "`linger.ms` is not valid"),
            (
                "compression.type",
                "secret",
                "`compression.type` is not valid",
            ),
            ("client.id", "secret\0", "NUL"),
        ] {
            let fault = fault(key, value).unwrap();
            assert!(fault.contains(why), "{key}: {fault}");
            assert!(!fault.contains("secret"), "{key}: {fault}");
        }
    }
}
