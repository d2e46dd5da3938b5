//! Operators of a running settings file: the control socket, and the audit file.

use anyhow::{Context, Result};
use fanfare_engine::agent::Crew;
use fanfare_engine::counters::Counters;
use fanfare_engine::host::HostHandle;
use fanfare_engine::idle::Idle;
use fanfare_engine::stop::Reload;
use fanfare_operator::{AuditFile, Control, HostOperator};
use std::path::PathBuf;
use std::sync::Arc;

use super::NAP;

/// The control socket and the audit file.
#[derive(Debug, clap::Args)]
pub(super) struct Operators {
    /// Listen for `fanfare ctl` at this Unix socket (docs/control.md).
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Append the commands of operators to this file, one JSON line each.
    #[arg(long, value_name = "FILE", requires = "control")]
    audit: Option<PathBuf>,
}

impl Operators {
    /// Opens the audit file, and listens. The crew's threads write the file.
    pub(super) fn begin(
        &self,
        host: HostHandle,
        crew: &mut Crew,
        counters: &Counters,
        reload: Reload,
    ) -> Result<Option<Control>> {
        let Some(path) = &self.control else {
            return Ok(None);
        };
        let mut audit = AuditFile::default();
        if let Some(file) = &self.audit {
            let name = file.display().to_string();
            let tell = move |what| tracing::warn!(target: "files", "audit file {name}: {what}");
            let opened = AuditFile::open(file, counters, reload.clone(), tell);
            let (end, writer) =
                opened.with_context(|| format!("cannot open {}", file.display()))?;
            crew.spawn(writer, Idle::Sleep(NAP), None)?;
            audit = end;
        }
        let operator = HostOperator::new(host, counters.clone(), audit, reload)
            .with_levels(crate::logs::levels());
        let control = Control::start(path, Arc::new(operator));
        let control = control.with_context(|| format!("cannot listen at {}", path.display()))?;
        let path = path.display();
        tracing::info!(target: "control", "listening for operators at {path}");
        Ok(Some(control))
    }
}
