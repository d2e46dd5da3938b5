//! Options of the log, for each long-running command.

use anyhow::{Result, bail};
use clap::Args;
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
    /// off, error, warn, info or debug; TARGET=LEVEL for one target, separated by commas [default:
    /// info].
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
    /// Returns these settings, overridden by the options.
    ///
    /// # Errors
    /// A value is out of its range.
    pub(crate) fn over(&self, mut settings: ProgramLog) -> Result<ProgramLog> {
        if let Some(to) = &self.log_to {
            settings.to = LogTo::from(to.as_str());
        }
        if let Some(format) = &self.log_format {
            settings.format = match format.as_str() {
                "json" => LogFormat::Json,
                _ => LogFormat::Text,
            };
        }
        if let Some(level) = &self.log_level {
            settings.level.clone_from(level);
        }
        let rotate = &mut settings.rotate;
        rotate.max_bytes = self.log_max_bytes.or(rotate.max_bytes);
        rotate.keep = self.log_keep.or(rotate.keep);
        if let Some(at) = &self.log_roll_at {
            (rotate.roll_at, rotate.time_zone) = (Some(at.clone()), None);
        }
        match settings.check() {
            Ok(()) => Ok(settings),
            Err(why) => bail!("options of the log: {why}"),
        }
    }

    /// Starts the log with the options, at these levels unless the options name others.
    ///
    /// # Errors
    /// A value is out of its range, or the file cannot be written.
    pub(crate) fn begin(&self, level: &str) -> Result<()> {
        let level = level.to_owned();
        let settings = ProgramLog {
            level,
            ..ProgramLog::default()
        };
        super::begin(&self.over(settings)?)
    }
}

/// Returns settings with `--quiet` applied, unless levels are set explicitly.
pub(crate) fn quieted(mut settings: ProgramLog, quiet: bool) -> ProgramLog {
    if quiet && settings.level == ProgramLog::default().level {
        settings.level = "warn".to_owned();
    }
    settings
}
