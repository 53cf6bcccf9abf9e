//! `resume`: what interrupted applies left is finished without a manifest, or said to be left.

use super::{Running, Shell, without_id};
use aws_sdk_dynamodb::types::AttributeValue;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::Stdio;
use zae_limits::clock::Clock;
use zae_limits::model::{EpochMs, FanoutKind, Level, NamespaceId, NamespaceName, Owed};
use zae_limits::store::{Claim, Embedded, Place, Store};

/// A seeded shell whose store can be written to behind the command line's back.
struct Left {
    shell: Shell,
    embedded: Embedded,
    store: Store,
    ns: NamespaceId,
}

impl Left {
    async fn new() -> Left {
        let shell = Shell::seeded();
        let embedded = Embedded::file(&shell.path(".zae-limits/local.db")).expect("the store");
        let place = Place {
            table: "rate-limits".to_owned(),
            host: embedded.host(),
        };
        let store = Store::new(embedded.client(), place);
        let name = NamespaceName::parse("tenant-alpha").expect("a name");
        let ns = store.namespace_id(&name).await.expect("readable");
        Left {
            shell,
            embedded,
            store,
            ns: ns.expect("registered"),
        }
    }

    /// Leaves a fan-out of `gpt-4` as an apply would that has this long left, in milliseconds.
    async fn leave(&self, lease_ms: i64) {
        let now = Clock::system().now();
        let level = Level::Resource("gpt-4".parse().expect("a name"));
        let kind = FanoutKind::Access;
        let claim = Claim {
            token: "dead".to_owned(),
            lease: EpochMs(now.0.saturating_add_signed(lease_ms)),
            full: false,
            now,
        };
        let owed = [Owed { level, kind }];
        let written = self.store.write_ahead(&self.ns, &owed, &claim);
        written.await.expect("recorded");
    }

    /// Sets or removes attributes of a stored item.
    async fn update(&self, pk: &str, sk: &str, expression: &str, value: Option<AttributeValue>) {
        let update = self
            .embedded
            .client()
            .update_item()
            .table_name("rate-limits");
        let update = update
            .key("PK", AttributeValue::S(format!("{}/{pk}", self.ns)))
            .key("SK", AttributeValue::S(sk.to_owned()))
            .update_expression(expression)
            .set_expression_attribute_values(value.map(|value| [(":v".to_owned(), value)].into()));
        update.send().await.expect("updated");
    }

    /// The resource is disabled and its buckets are not stamped, as an apply leaves it that dies
    /// between the two.
    async fn disable_unstamped(&self) {
        let yes = AttributeValue::Bool(true);
        self.update("RESOURCE#gpt-4", "#CONFIG", "SET disabled = :v", Some(yes))
            .await;
    }

    fn shows(&self) -> String {
        let explained = self.shell.json("--local explain user-789 gpt-4", 0);
        let shows = &explained["explanation"]["shards"][0]["shows"];
        shows.as_str().expect("a mode").to_owned()
    }
}

#[tokio::test]
async fn nothing_pending_is_nothing_done() {
    let shell = Shell::seeded();
    insta::assert_snapshot!(shell.ok("--local resume").stdout, @r"tenant-alpha: nothing is pending");
    insta::assert_snapshot!(shell.ok("--local resume -o markdown").stdout, @r"### `tenant-alpha`: nothing is pending");
    let document = shell.json("--local resume", 0);
    assert_eq!(document["command"], "resume");
    assert_eq!(document["namespace"], "tenant-alpha");
    assert_eq!(document["status"], "unchanged");
    assert_eq!(document["report"]["pending"], serde_json::json!([]));
}

#[tokio::test]
async fn what_a_dead_apply_left_is_finished() {
    let left = Left::new().await;
    left.disable_unstamped().await;
    left.leave(-1).await;
    assert_eq!(left.shows(), "enforce");
    insta::assert_snapshot!(left.shell.ok("--local explain user-789 gpt-4").redacted(), @r"
        user-789 on gpt-4  (namespace tenant-alpha, table rate-limits, .zae-limits/local.db)

        Access: refused, every request; resource gpt-4 decides
            entity user-789/gpt-4       not stored
            entity user-789/_default_   not stored
          = resource gpt-4              disabled: true   decides

        Limits: those of resource gpt-4
            entity user-789/gpt-4       not stored
            entity user-789/_default_   not stored
          = resource gpt-4              rpm 1000/60s, tpm 75000 +50000/60s   decides
          - system                      rpm 10000/60s                        overruled

        Cascade: no, the entity has no parent

        Buckets:
          ! shard 0: enforce, and it must show disabled: run resume to mend it

        Pending: fan-outs of earlier applies, so the buckets may lag behind the above
          access fan-out of resource gpt-4
        ");
    insta::assert_snapshot!(left.shell.ok("--local resume --settle 0").redacted(), @r"
        tenant-alpha: resumed  1 fan-out, 4 buckets stamped, in N s

            resource gpt-4: stopped 4 buckets; 2 others follow a more specific level
        ");
    assert_eq!(left.shows(), "disabled");
    assert_eq!(left.store.pending(&left.ns).await.expect("pending"), []);
    let explained = left.shell.json("--local explain user-789 gpt-4", 0);
    assert_eq!(explained["explanation"]["pending"], serde_json::json!([]));
}

#[tokio::test]
async fn what_a_live_apply_holds_is_in_effect_at_once_and_stays_its_own() {
    let left = Left::new().await;
    left.disable_unstamped().await;
    left.leave(600_000).await;
    let document = left.shell.json("--local resume --settle 0", 0);
    assert_eq!(document["status"], "resumed");
    let report = &document["report"];
    assert_eq!(
        (&report["resumed"], &report["joined"]),
        (&0.into(), &1.into())
    );
    assert_eq!(left.shows(), "disabled");
    let pending = left.store.pending(&left.ns).await.expect("pending");
    assert!(pending[0].owners.contains_key("dead") && pending[0].owners.len() == 1);
    let explained = left.shell.ok("--local explain user-789 gpt-4");
    let said = explained.redacted();
    insta::assert_snapshot!(said.rsplit("\n\n").next().expect("a last paragraph"), @r"
        Pending: fan-outs of earlier applies, so the buckets may lag behind the above
          access fan-out of resource gpt-4, held for another N s by an apply that may still be running
        ");
    let other = left.shell.json("--local explain user-456 legacy-model", 0);
    assert_eq!(
        other["explanation"]["pending"],
        serde_json::json!([]),
        "a fan-out of another resource is none of its business"
    );
}

#[tokio::test]
async fn what_cannot_be_finished_stays_pending_and_is_no_success() {
    let left = Left::new().await;
    left.leave(-1).await;
    // A bucket of the resource whose own key has a name outside the rules.
    let index = AttributeValue::S(format!("{}/RESOURCE#gpt-4", left.ns));
    let broken = "BUCKET# broken#gpt-4#0";
    left.update(broken, "#STATE", "SET GSI2PK = :v", Some(index))
        .await;
    let sort = AttributeValue::S("BUCKET# broken#0".to_owned());
    left.update(broken, "#STATE", "SET GSI2SK = :v", Some(sort))
        .await;
    let said = left.shell.run("--local resume --settle 0");
    assert_eq!(said.code, 5, "{said:?}");
    let hidden = |text: &str| without_id(text, left.ns.as_str());
    insta::assert_snapshot!(hidden(&said.redacted()), @r#"
        tenant-alpha: partly resumed  1 fan-out, 4 buckets stamped, in N s

          ! resource gpt-4: enabled 4 buckets, 7 found, 1 could not be written (some buckets could not be written)
              NS/BUCKET# broken#gpt-4#0: its key does not read: an entity id may not start with ' ': it starts with a letter or a digit and holds letters, digits and _ . : @ -

        Still pending; the next resume or apply retries it:
          access fan-out of resource gpt-4
        "#);
    insta::assert_snapshot!(hidden(&said.stderr), @r"error: access fan-out of resource gpt-4: some buckets could not be written (1 of 7, such as NS/BUCKET# broken#gpt-4#0: its key does not read: an entity id may not start with ' ': it starts with a letter or a digit and holds letters, digits and _ . : @ -); it stays pending, the next run retries it");
    let said = left.shell.run("--local resume --settle 0 -o markdown");
    assert_eq!(said.code, 5, "{said:?}");
    insta::assert_snapshot!(hidden(&said.redacted()), @r"
        ### `tenant-alpha`: partly resumed

        1 fan-out, 4 buckets stamped, in N s.

        | fan-out | effect | found | failed | ended |
        | --- | --- | --- | --- | --- |
        | `resource gpt-4` | enabled 4 buckets | 7 | 1 | some buckets could not be written |

        - pending: access fan-out of resource gpt-4
        - access fan-out of resource gpt-4: some buckets could not be written \(1 of 7, such as NS/BUCKET\# broken\#gpt-4\#0: its key does not read: an entity id may not start with ' ': it starts with a letter or a digit and holds letters, digits and \_ . : @<!-- --> -\); it stays pending, the next run retries it
        ");
    let document = left.shell.json("--local resume --settle 0", 5);
    assert_eq!(document["status"], "partial");
    assert_eq!(document["report"]["pending"][0]["target"], "gpt-4");
    assert_eq!(
        document["report"]["pending"][0]["held_until"],
        serde_json::Value::Null
    );
    let plan = left.shell.json("--local plan -f manifests", 0);
    assert_eq!(plan["plans"][0]["pending"][0]["target"], "gpt-4");
}

#[tokio::test]
async fn an_interrupted_resume_says_how_to_go_on() {
    let left = Left::new().await;
    left.disable_unstamped().await;
    left.leave(-1).await;
    let mut command = left.shell.command("--local resume --settle 300".split(' '));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut resume = Running(command.spawn().expect("it starts"));
    for _ in 0..200 {
        if left.shows() == "disabled" {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&resume.0), Signal::TERM).expect("signalled");
    assert_eq!(resume.0.wait().expect("it ends").code(), Some(143));
    let mut said = String::new();
    let mut stderr = resume.0.stderr.take().expect("its stderr");
    stderr.read_to_string(&mut said).expect("UTF-8");
    assert!(said.contains("Run it again to finish it."), "{said}");
    assert_eq!(
        left.store.pending(&left.ns).await.expect("pending").len(),
        1
    );
    left.shell.ok("--local resume --settle 0");
    assert_eq!(left.store.pending(&left.ns).await.expect("pending"), []);
}

#[test]
fn a_store_or_a_namespace_that_is_not_there_is_an_error() {
    let shell = Shell::new();
    let said = shell.run("--local resume");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(!shell.path(".zae-limits").exists(), "nothing is made");
    shell.ok("--local local seed");
    let said = shell.run("--local -N nobody resume");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.stderr.contains("\"nobody\" is not registered"),
        "{said:?}"
    );
}
