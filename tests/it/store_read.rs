//! Reading many items at once: each comes with what it was asked for, in whatever order and parts it comes.

use crate::bucket_items::store_level;
use crate::transport::{Layer, Request, over};
use crate::weather::{answer_of, respond};
use crate::world::{World, manifest};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zae_limits::model::{Level, LevelConfig};
use zae_limits::store::Embedded;

/// Leaves the last half of every batch of reads for another time, and answers the first from its end. Clones
/// share what has been left.
#[derive(Debug, Clone, Default)]
struct ByHalves(Arc<Mutex<BTreeSet<String>>>);

impl ByHalves {
    fn left(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether these keys are left; no key is left twice.
    fn leaves(&self, keys: &[Value]) -> bool {
        let pk = |key: &Value| key["PK"]["S"].as_str().expect("a key").to_owned();
        let mut left = self.left();
        if keys.iter().any(|key| left.contains(&pk(key))) {
            return false;
        }
        left.extend(keys.iter().map(pk));
        !keys.is_empty()
    }
}

impl Layer for ByHalves {
    fn pass(&self, mut request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let mut read = Request::read(&request);
        if read.operation != "BatchGetItem" {
            return next.call(request);
        }
        let tables = read.body["RequestItems"].as_object().expect("tables");
        let table = tables.keys().next().expect("a table").clone();
        let mut left = read.body["RequestItems"][&table].clone();
        let mut keys = left["Keys"].as_array().expect("keys").clone();
        let last = keys.split_off(keys.len().div_ceil(2));
        if !self.leaves(&last) {
            return next.call(request);
        }
        read.body["RequestItems"][&table]["Keys"] = keys.into();
        left["Keys"] = last.into();
        let next = next.clone();
        HttpConnectorFuture::new(async move {
            let mut answer = answer_of(&mut request, &read.body, &next).await?;
            let items = answer["Responses"][&table].as_array_mut();
            items.expect("items").reverse();
            answer["UnprocessedKeys"] = json!({ table: left });
            Ok(respond(200, &answer))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn every_level_comes_with_its_own_config_whatever_parts_a_table_answers_in() {
    let embedded = Embedded::memory().expect("an embedded database");
    let world = World::over(embedded.client()).await;
    let resource = |n: u32| format!("m{n}: {{ limits: {{ rpm: {{ capacity: {} }} }} }}", n + 1);
    let resources: Vec<String> = (0..260).map(resource).collect();
    let declared = manifest(&format!("resources: {{ {} }}", resources.join(", ")));
    let asked: BTreeSet<Level> = declared.levels().keys().cloned().collect();
    let mut stored: BTreeMap<Level, LevelConfig> = declared.levels().clone();
    // Some of those asked for are not there.
    let mut places = 0..;
    stored.retain(|_, _| places.next().is_some_and(|place: u32| place % 26 != 7));
    assert_eq!((asked.len(), stored.len()), (260, 250));
    for (level, config) in &stored {
        store_level(&world, level, config).await;
    }

    let halves = ByHalves::default();
    let client = Embedded::client_over(over(embedded.http_client(), halves.clone()));
    let reading = World::before_first_use(client);
    let configs = reading.store.configs(&reading.ns, &asked).await;
    let configs: BTreeMap<Level, LevelConfig> = configs
        .expect("the levels")
        .into_iter()
        .map(|(level, config)| (level, config.expect("a config that reads")))
        .collect();
    assert_eq!(halves.left().len(), 50 + 50 + 30);
    assert_eq!(configs, stored);
}
