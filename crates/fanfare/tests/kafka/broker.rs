//! Apache Kafka from Maven Central: one node, which is its own controller.

use crate::common::{Folder, Running, eventually};
use fanfare_peers::{Absent, jars};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A broker that keeps its data over restarts.
pub(crate) struct Broker {
    jars: PathBuf,
    properties: String,
    running: Option<Running>,
    /// The address it listens on.
    pub(crate) address: String,
}

impl Broker {
    /// Starts a broker with its data in a folder.
    pub(crate) fn start(folder: &Folder) -> Result<Self, Absent> {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kafka");
        let pom = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka/pom.xml");
        let jars = jars(&home, &pom)?;
        // A node names its controller, and clients their broker, before either listens.
        let ports: Vec<TcpListener> = (0..2)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let ports = ports.iter().map(|port| port.local_addr().unwrap());
        let addresses: Vec<String> = ports.map(|address| address.to_string()).collect();
        let [broker, controller] = &addresses[..] else {
            unreachable!("there are two");
        };
        let data = folder.file("broker");
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\n\
             controller.quorum.voters=1@{controller}\ncontroller.listener.names=CONTROLLER\n\
             listeners=PLAINTEXT://{broker},CONTROLLER://{controller}\nlog.dirs={data}\n\
             offsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n\
             transaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\ntransaction.state.log.num.partitions=1\n\
             num.partitions=3\n"
        );
        let mut own = Self {
            jars,
            properties: folder.with("broker.properties", text),
            running: None,
            address: broker.clone(),
        };
        let id = "MkU3OEVBNTcwNTJENDM2Qg";
        let format = ["format", "-t", id, "-c", &own.properties];
        let formatted = own.java("kafka.tools.StorageTool").args(format).output();
        let formatted = formatted.unwrap();
        assert!(formatted.status.success(), "{formatted:?}");
        own.start_again();
        Ok(own)
    }

    fn java(&self, class: &str) -> Command {
        let mut java = Command::new("java");
        java.args(["-Xmx512m", "-XX:TieredStopAtLevel=1", "-classpath"])
            .arg(self.jars.join("*"))
            .arg(class)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        java
    }

    /// Restarts it with its data, and waits until it listens.
    pub(crate) fn start_again(&mut self) {
        let mut java = self.java("kafka.Kafka");
        self.running = Some(Running::start(java.arg(&self.properties)));
        eventually("the broker to listen", || {
            TcpStream::connect(&self.address).is_ok()
        });
    }

    /// Kills the process, like a failure of its machine.
    pub(crate) fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.kill();
        }
    }
}
