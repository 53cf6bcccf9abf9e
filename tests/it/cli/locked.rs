//! An embedded store that another process holds: one line that names it, in good time.

use super::{Shell, said};
use rustix::fs::{FlockOperation, fcntl_lock};
use std::fs::File;
use std::time::Duration;

#[test]
fn a_store_that_another_process_holds_is_one_line_within_ten_seconds() {
    let shell = Shell::seeded();
    let path = shell.path(".zae-limits/local.db");
    let file = File::options()
        .read(true)
        .write(true)
        .open(&path)
        .expect("the store");
    // What SQLite locks are bytes of the file, so a lock on all of it is one on those.
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).expect("nobody else has it");
    let lines = [
        "--local plan -f manifests",
        "--local apply -f manifests --yes",
        "--local explain user-123 gpt-4",
    ];
    let clock = zae_limits::clock::Clock::system();
    let running = lines.map(|line| {
        let command = shell.command(line.split_whitespace());
        std::thread::spawn({
            let clock = clock.clone();
            move || {
                let began = clock.now();
                let said = said(command);
                (said, Duration::from_millis(clock.now().0 - began.0))
            }
        })
    });
    for (line, running) in lines.iter().zip(running) {
        let (said, took) = running.join().expect("it ran");
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (1, ""),
            "{line}: {said:?}"
        );
        assert_eq!(
            said.stderr,
            "error: the embedded store .zae-limits/local.db stayed locked by another process: wait for that \
             one or stop it, then run this again\n",
            "{line}"
        );
        assert!(took < Duration::from_secs(10), "{line}: {took:?}");
    }
    drop(file);
    shell.ok("--local plan -f manifests");
}
