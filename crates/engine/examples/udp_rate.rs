//! The raw pair: datagrams to two multicast groups on loopback, received and only counted. What
//! `fanfare fast multicast` and `decode` are compared with.
//! `cargo run --release -p fanfare-engine --example udp_rate [COUNT] [BYTES]`

use fanfare_engine::udp::{Receiver, ReceiverConfig, Sender, SenderConfig};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;
use std::time::{Duration, Instant};

const BATCH: usize = 32;

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse().ok());
    let count = args.next().flatten().unwrap_or(30_000usize);
    let bytes = args.next().flatten().unwrap_or(66usize);
    let groups = [1, 2].map(|last| SocketAddrV4::new(Ipv4Addr::new(239, 255, 79, last), 13_020));
    let mut receivers = Vec::new();
    for group in groups {
        receivers.push(Receiver::open(&ReceiverConfig {
            buffer: 32 << 20,
            ..ReceiverConfig::new(group)
        })?);
    }
    let start = Instant::now();
    let counting = thread::spawn(move || count_all(receivers, 2 * count));
    let mut senders = Vec::new();
    for group in groups {
        senders.push(Sender::open(&SenderConfig::new(group))?);
    }
    let payload = vec![7; bytes];
    let batch = vec![payload.as_slice(); BATCH];
    for _ in 0..count.div_ceil(BATCH) {
        for sender in &mut senders {
            let mut sent = 0;
            while sent < BATCH {
                sent += sender.send_batch(&batch[sent..])?;
            }
        }
    }
    let sending = start.elapsed();
    let Ok(outcome) = counting.join() else {
        return Err(std::io::Error::other("the receiver failed"));
    };
    let (received, elapsed) = outcome?;
    let sent = 2 * count.div_ceil(BATCH) * BATCH;
    println!("sent {sent}: {:.0}/s", sent as f64 / sending.as_secs_f64());
    println!(
        "received {received}: {:.0}/s",
        received as f64 / elapsed.as_secs_f64()
    );
    Ok(())
}

/// Counts until all have come, or nothing for 200 ms; the time to the last.
fn count_all(mut receivers: Vec<Receiver>, wanted: usize) -> std::io::Result<(usize, Duration)> {
    let start = Instant::now();
    let (mut received, mut last) = (0, start);
    while received < wanted && last.elapsed() < Duration::from_millis(200) {
        let mut came = 0;
        for receiver in &mut receivers {
            came += receiver.receive()?;
        }
        if came > 0 {
            received += came;
            last = Instant::now();
        }
    }
    Ok((received, last - start))
}
