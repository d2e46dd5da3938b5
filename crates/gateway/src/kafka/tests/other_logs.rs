//! Topics that another log has filled.

use super::*;

#[test]
fn a_topic_of_another_log_is_left_alone() {
    let folder = Scratch::new("other");
    let topic = Fake::default();
    topic
        .broker
        .lock()
        .unwrap()
        .messages
        .push((500, What::Event, Vec::new()));
    write(&folder, 1..10, 1);
    let told = run(&folder, &topic, 3, true);
    assert!(
        told[0].contains("the topic has event 500, but the log ends with event 9"),
        "{told:?}"
    );
    assert_eq!(numbers(&topic, What::Event), [500]);
    // The plant whose log it has goes on.
    assert_eq!(topic.broker.lock().unwrap().opened, 0);
}

#[test]
fn a_topic_of_a_log_with_another_id_is_refused_before_its_plant_is_ended() {
    let folder = Scratch::new("id");
    write(&folder, 1..10, 1);
    let own = (5, What::Event, Vec::new());
    // 0.3.0 wrote no ID. The time of the event is the log's.
    for (log, is_written) in [(Some(LOG), true), (Some(LOG + 1), false), (None, true)] {
        let topic = Fake::default();
        {
            let mut broker = topic.broker.lock().unwrap();
            broker.messages.push(own.clone());
            (broker.time, broker.log) = (Some(0), log);
        }
        let told = run(&folder, &topic, 5, true);
        let events = numbers(&topic, What::Event);
        assert_eq!(events.len(), if is_written { 5 } else { 1 }, "{told:?}");
        let is_refused = told[0].contains("the log with the ID 00000000000000a8");
        assert_ne!(is_refused, is_written, "{told:?}");
        assert_eq!(topic.broker.lock().unwrap().opened, u64::from(is_written));
    }
}

#[test]
fn a_copy_of_the_log_that_went_another_way_is_told_apart_by_the_time() {
    let folder = Scratch::new("copy");
    let topic = Fake::default();
    write(&folder, 1..10, 1);
    {
        let mut broker = topic.broker.lock().unwrap();
        broker.messages.push((5, What::Event, Vec::new()));
        (broker.time, broker.log) = (Some(7), Some(LOG));
    }
    let told = run(&folder, &topic, 5, true);
    assert!(told[0].contains("event 5 is not the log's"), "{told:?}");
    assert_eq!(numbers(&topic, What::Event), [5]);
    assert_eq!(topic.broker.lock().unwrap().opened, 0);
}

#[test]
fn a_topic_that_another_log_fills_after_the_look_is_left_alone() {
    let folder = Scratch::new("between");
    let topic = Fake::default();
    write(&folder, 1..10, 1);
    topic.broker.lock().unwrap().between = Some((4, LOG + 1));
    let told = run(&folder, &topic, 5, true);
    assert!(
        told[0].contains("the log with the ID 00000000000000a8"),
        "{told:?}"
    );
    assert_eq!(numbers(&topic, What::Event), [4]);
    assert_eq!(topic.broker.lock().unwrap().opened, 1);
}

#[test]
fn a_topic_with_the_event_that_the_log_has_next_is_refused_at_once() {
    let folder = Scratch::new("next");
    let topic = Fake::default();
    topic.broker.lock().unwrap().messages = vec![(10, What::Event, Vec::new())];
    write(&folder, 1..10, 1);
    let told = run(&folder, &topic, 3, true);
    assert!(
        told[0].contains("the topic has event 10, but the log ends with event 9"),
        "{told:?}"
    );
    assert_eq!(topic.broker.lock().unwrap().opened, 0);
}

#[test]
fn a_topic_that_the_log_has_overtaken_is_still_that_of_another_log() {
    let folder = Scratch::new("overtaken");
    let topic = Fake::default();
    let other = (500, What::Event, Vec::new());
    topic.broker.lock().unwrap().messages.push(other);
    write(&folder, 1..10, 1);
    let (mut sink, told, _) = sink(config(), &folder, &topic, &Arc::default());
    sink.do_work(at(1)).unwrap();
    write(&folder, 10..600, 2);
    for turn in 3..9 {
        sink.do_work(at(turn)).unwrap();
    }
    assert_eq!(numbers(&topic, What::Event), [500]);
    let told: Vec<String> = told.iter().map(|notice| notice.to_string()).collect();
    assert!(
        told.iter().all(|line| line.contains("another log")),
        "{told:?}"
    );
}

#[test]
fn a_topic_that_was_refused_and_is_made_again_is_written() {
    let folder = Scratch::new("again");
    let topic = Fake::default();
    let other = (500, What::Event, Vec::new());
    topic.broker.lock().unwrap().messages.push(other);
    write(&folder, 1..10, 1);
    let (mut sink, _told, _) = sink(config(), &folder, &topic, &Arc::default());
    sink.do_work(at(1)).unwrap();
    topic.broker.lock().unwrap().messages.clear();
    write(&folder, 10..501, 2);
    for turn in 3..9 {
        sink.do_work(at(turn)).unwrap();
    }
    assert!(numbers(&topic, What::Event).into_iter().eq(1..501));
    // A new connection finds it as it was when it was refused.
    topic.broker.lock().unwrap().fails = vec![0];
    write(&folder, 501..510, 3);
    for turn in 9..19 {
        sink.do_work(at(turn)).unwrap();
    }
    assert!(numbers(&topic, What::Event).into_iter().eq(1..510));
}

#[test]
fn a_topic_whose_last_event_has_another_time_is_that_of_another_log() {
    let folder = Scratch::new("time");
    write(&folder, 1..10, 1);
    // The events of the log are of the first millisecond of 1970.
    for (time, is_written) in [(Some(7), false), (Some(0), true), (None, true)] {
        let topic = Fake::default();
        let last = (5, What::Event, Vec::new());
        topic.broker.lock().unwrap().messages.push(last);
        topic.broker.lock().unwrap().time = time;
        let told = run(&folder, &topic, 5, true);
        let events = numbers(&topic, What::Event);
        assert_eq!(events.len(), if is_written { 5 } else { 1 }, "{told:?}");
        let is_refused = told[0].contains("event 5 is not the log's");
        assert_ne!(is_refused, is_written, "{told:?}");
    }
}
