//! Parsers of numbers of a command line that must lie in a range. One outside is wrong usage.

use clap::builder::RangedU64ValueParser;
use std::ops::RangeInclusive;

/// Returns the parser of a whole number in this range.
pub(crate) fn whole<T>(range: RangeInclusive<u64>) -> RangedU64ValueParser<T>
where
    T: TryFrom<u64> + Clone + Send + Sync,
    RangedU64ValueParser<T>: Default,
{
    RangedU64ValueParser::default().range(range)
}

/// Returns the parser of a rate or a number of seconds: above 0, and not above `most`.
pub(crate) fn rate(most: f64) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= most => Ok(rate),
        _ => Err(format!("must be above 0 and at most {most:.0}")),
    }
}

/// Returns the parser of a number of seconds from 0 to `most`, with an optional fraction.
pub(crate) fn seconds(most: f64) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| match text.parse::<f64>() {
        Ok(seconds) if (0.0..=most).contains(&seconds) => Ok(seconds),
        _ => Err(format!(
            "must be a number of seconds between 0 and {most:.0}"
        )),
    }
}

/// Parses a share, from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("must be between 0 and 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_positive_and_finite() {
        let rate = rate(1e8);
        assert_eq!((rate("0.5"), rate("1e8")), (Ok(0.5), Ok(1e8)));
        for bad in ["0", "-1", "NaN", "inf", "1e300", "fast"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn seconds_have_a_fraction_and_an_end() {
        let seconds = seconds(3600.0);
        assert_eq!((seconds("0"), seconds("0.5")), (Ok(0.0), Ok(0.5)));
        for bad in ["-1", "NaN", "inf", "3600.1", "long"] {
            let told = "must be a number of seconds between 0 and 3600";
            assert_eq!(seconds(bad).unwrap_err(), told, "{bad}");
        }
    }

    #[test]
    fn shares_are_of_all() {
        assert_eq!((share("0"), share("1")), (Ok(0.0), Ok(1.0)));
        assert!(share("1.1").is_err() && share("NaN").is_err());
    }
}
