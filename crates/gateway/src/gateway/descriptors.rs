//! The descriptors of the process, and who may have how many of them.

use crate::config::Config;
use fanfare_engine::limits::raise_open_files;

/// Descriptors reserved for files, captures, DDS and other uses of the process.
const SPARE: u64 = 64;

/// Returns the number of descriptors that the sockets of all ports need.
#[must_use]
pub fn descriptors_wanted(config: &Config) -> u64 {
    let sessions = config.producers.max_sessions + config.consumers.max_sessions;
    sessions as u64 + others(config) + 2 * SPARE
}

/// Returns how many clients may connect to the ports that are not for FIX.
fn others(config: &Config) -> u64 {
    let dbn = config.dbn.as_ref().map_or(0, |dbn| dbn.max_clients);
    let console = config.console.as_ref();
    let console = console.map_or(0, |console| console.connections);
    (dbn + console) as u64
}

/// Returns the number of descriptors that the process may have.
fn limit() -> u64 {
    // A raise by 0 never lowers the limit, so this reads it.
    raise_open_files(0).unwrap_or(u64::MAX)
}

/// Returns the descriptors that are not for FIX sessions. Clients of other ports have at most a
/// quarter of those of the process, so that sessions have some where there are few.
pub(crate) fn spare(config: &Config) -> u64 {
    spare_of(config, limit())
}

fn spare_of(config: &Config, limit: u64) -> u64 {
    SPARE + others(config).min(limit / 4)
}

/// Returns how many clients a port for DBN that is opened now accepts at a time, or `None` if the
/// configuration has none: `dbn.max_clients`, but no more than the console leaves of a quarter of
/// the descriptors of the process. It is at least one.
#[must_use]
pub fn dbn_clients(config: &Config) -> Option<usize> {
    dbn_clients_of(config, limit())
}

fn dbn_clients_of(config: &Config, limit: u64) -> Option<usize> {
    let most = config.dbn.as_ref()?.max_clients;
    let console = config.console.as_ref();
    let console = console.map_or(0, |console| console.connections as u64);
    let left = (limit / 4).saturating_sub(console).max(1);
    Some(most.min(usize::try_from(left).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::console::ConsoleConfig;
    use crate::dbn::config::DbnConfig;

    #[test]
    fn clients_of_dbn_and_of_the_console_have_descriptors() {
        let mut config = Config::default();
        let (wanted, few) = (descriptors_wanted(&config), 1_024);
        assert_eq!(spare_of(&config, few), SPARE);
        config.dbn = Some(DbnConfig {
            max_clients: 500,
            ..DbnConfig::default()
        });
        config.console = Some(ConsoleConfig {
            connections: 7,
            ..ConsoleConfig::default()
        });
        assert_eq!(descriptors_wanted(&config), wanted + 507);
        assert_eq!(spare_of(&config, 1 << 20), SPARE + 507);
        assert_eq!(spare_of(&config, few), SPARE + 256);
    }

    #[test]
    fn the_clients_of_dbn_leave_the_descriptors_of_others_to_them() {
        let mut config = Config::default();
        assert_eq!(dbn_clients_of(&config, 1 << 20), None);
        config.dbn = Some(DbnConfig::default());
        for (limit, most) in [(1 << 20, 1_000), (1_024, 256), (400, 100), (0, 1)] {
            assert_eq!(dbn_clients_of(&config, limit), Some(most));
        }
        config.console = Some(ConsoleConfig {
            connections: 99,
            ..ConsoleConfig::default()
        });
        for (limit, most) in [(1 << 20, 1_000), (1_024, 157), (400, 1), (40, 1)] {
            assert_eq!(dbn_clients_of(&config, limit), Some(most));
        }
    }
}
