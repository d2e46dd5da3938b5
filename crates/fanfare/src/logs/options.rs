//! Options of the log, for each long-running command.

use crate::usage::misuse;
use anyhow::Result;
use clap::Args;
use fanfare_engine::levels::LogLevels;
use fanfare_gateway::{LogFormat, LogTo, ProgramLog};

/// The options of the program's log.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Log")]
pub(crate) struct LogArgs {
    /// Destination of the log: stderr, journald (stderr, with priorities for the journal), or a
    /// file, which is opened again at SIGHUP [default: stderr].
    #[arg(long, value_name = "TO")]
    log_to: Option<String>,
    /// text, or json: an object for each line [default: text].
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    log_format: Option<String>,
    /// off, error, warn, info, debug or trace; TARGET=LEVEL for one target, separated by commas
    /// [default: info].
    #[arg(long, value_name = "LEVELS")]
    log_level: Option<String>,
    /// Size at which the file is renamed and a new one begun [default: 104857600].
    #[arg(long, value_name = "BYTES")]
    log_max_bytes: Option<u64>,
    /// Time of each day at which the file is renamed and a new one begun, UTC.
    #[arg(long, value_name = "HH:MM")]
    log_roll_at: Option<String>,
    /// Files that are kept, compressed by zstd [default: 10].
    #[arg(long, value_name = "N")]
    log_keep: Option<usize>,
}

impl LogArgs {
    /// Returns these settings, overridden by the options. With `quiet`, the level is `warn` unless
    /// one is set.
    ///
    /// # Errors
    /// A value is out of its range.
    pub(crate) fn over(&self, mut settings: ProgramLog, quiet: bool) -> Result<ProgramLog> {
        if let Some(to) = &self.log_to {
            settings.to = LogTo::from(to.as_str());
        }
        if let Some(format) = &self.log_format {
            settings.format = match format.as_str() {
                "json" => LogFormat::Json,
                _ => LogFormat::Text,
            };
        }
        settings.level = self.level_over(settings.level.take(), quiet);
        let rotate = &mut settings.rotate;
        rotate.max_bytes = self.log_max_bytes.or(rotate.max_bytes);
        rotate.keep = self.log_keep.or(rotate.keep);
        if let Some(at) = &self.log_roll_at {
            (rotate.roll_at, rotate.time_zone) = (Some(at.clone()), None);
        }
        match settings.check() {
            Ok(()) => Ok(settings),
            Err(why) => misuse!("options of the log: {why}"),
        }
    }

    /// Returns the levels of the options, of the settings, or of `--quiet`: the first that is set.
    fn level_over(&self, level: Option<String>, quiet: bool) -> Option<String> {
        let set = self.log_level.clone().or(level);
        set.or_else(|| quiet.then(|| "warn".to_owned()))
    }

    /// Starts the log with the options, at these levels unless the options name others.
    ///
    /// # Errors
    /// A value is out of its range, or the file cannot be written.
    pub(crate) fn begin(&self, level: &str) -> Result<()> {
        let settings = ProgramLog {
            level: Some(level.to_owned()),
            ..ProgramLog::default()
        };
        super::begin(&self.over(settings, false)?)
    }
}

/// The levels of a log whose configuration can be reloaded.
pub(crate) struct Levels<'a> {
    in_force: LogLevels,
    args: &'a LogArgs,
    quiet: bool,
    /// The levels that configuration and options set.
    set: Option<String>,
}

impl<'a> Levels<'a> {
    /// Takes the levels of a log, which begins with these settings, and the options that precede
    /// those of a reload.
    pub(crate) fn new(
        in_force: LogLevels,
        begun: &ProgramLog,
        args: &'a LogArgs,
        quiet: bool,
    ) -> Self {
        Self {
            in_force,
            args,
            quiet,
            set: begun.level.clone(),
        }
    }

    /// Returns the levels in force.
    pub(crate) const fn in_force(&self) -> &LogLevels {
        &self.in_force
    }

    /// Adopts the levels of a reloaded configuration, as a start with it would. A level that an
    /// operator has set stays, unless these levels have changed.
    pub(crate) fn follow(&mut self, log: ProgramLog) {
        let set = self.args.level_over(log.level, self.quiet);
        if set == self.set {
            return;
        }
        // A target that the list no longer names has the default again.
        let list = ["info"].into_iter().chain(set.as_deref());
        // The levels were checked with the configuration.
        let _ = self.in_force.apply(&list.collect::<Vec<_>>().join(","));
        self.set = set;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the levels after a start and a reload with these levels in the configuration.
    fn followed(args: &LogArgs, quiet: bool, [begun, reloaded]: [Option<&str>; 2]) -> String {
        let log = |level: Option<&str>| ProgramLog {
            level: level.map(str::to_owned),
            ..ProgramLog::default()
        };
        let in_force = LogLevels::new(&["session", "dds"]);
        let begun = args.over(log(begun), quiet).unwrap();
        if let Some(level) = &begun.level {
            in_force.apply(level).unwrap();
        }
        let mut levels = Levels::new(in_force, &begun, args, quiet);
        levels.follow(log(reloaded));
        levels.in_force().to_string()
    }

    #[test]
    fn levels_after_a_reload_are_those_of_a_start() {
        let none = LogArgs::default();
        let cases = [
            ([Some("warn,dds=debug"), Some("session=debug")], false),
            ([Some("error"), None], false),
            ([Some("error"), None], true),
            ([None, Some("info")], true),
            ([None, None], true),
        ];
        let expected = [
            "session=debug,dds=info",
            "session=info,dds=info",
            "session=warn,dds=warn",
            "session=info,dds=info",
            "session=warn,dds=warn",
        ];
        for ((levels, quiet), expected) in cases.into_iter().zip(expected) {
            assert_eq!(followed(&none, quiet, levels), expected, "{levels:?}");
        }
    }

    #[test]
    fn values_out_of_range_are_wrong_usage() {
        let level = Some("loud".to_owned());
        let args = [
            LogArgs {
                log_level: level,
                ..LogArgs::default()
            },
            LogArgs {
                log_keep: Some(0),
                ..LogArgs::default()
            },
            LogArgs {
                log_max_bytes: Some(1),
                ..LogArgs::default()
            },
        ];
        for args in args {
            let error = args.over(ProgramLog::default(), false).unwrap_err();
            assert!(error.is::<crate::usage::Usage>(), "{error}");
        }
    }

    #[test]
    fn a_level_that_is_set_precedes_quiet() {
        let none = LogArgs::default();
        let levels = [Some("info"), Some("info")];
        assert_eq!(followed(&none, true, levels), "session=info,dds=info");
    }

    #[test]
    fn an_option_precedes_the_levels_of_a_reload() {
        let args = LogArgs {
            log_level: Some("error".to_owned()),
            ..LogArgs::default()
        };
        let levels = [None, Some("debug")];
        assert_eq!(followed(&args, false, levels), "session=error,dds=error");
    }

    #[test]
    fn levels_of_an_operator_stay_until_the_configuration_changes() {
        let args = LogArgs::default();
        let in_force = LogLevels::new(&["session", "dds"]);
        let mut levels = Levels::new(in_force.clone(), &ProgramLog::default(), &args, false);
        in_force.apply("dds=debug").unwrap();
        levels.follow(ProgramLog::default());
        assert_eq!(in_force.to_string(), "session=info,dds=debug");
        let level = Some("session=warn".to_owned());
        levels.follow(ProgramLog {
            level,
            ..ProgramLog::default()
        });
        assert_eq!(in_force.to_string(), "session=warn,dds=info");
    }
}
