//! The table as a stand-in for DynamoDB has it for one fan-out: every answer ready before the first request, so
//! that one costs next to nothing.

use crate::{Failure, world};
use serde_json::{Value, json};
use std::fmt::Write;
use zae_limits::model::NamespaceId;
use zae_limits::store::STAMPS_PER_BATCH;
use zae_limits::table::BucketId;

/// Buckets on a page of an index: what DynamoDB's megabyte holds of buckets with one limit.
const PAGE: usize = 2_400;

/// The buckets of one resource that is disabled, and nothing else: every stamp lands at once.
#[derive(Debug)]
pub struct Stamped {
    /// Every bucket as JSON text, each with a comma before it.
    items: String,
    /// Where each of them starts in it, and where the last one ends.
    starts: Vec<usize>,
    /// The key of the resource's config.
    resource: String,
    /// The answer to a read of config, without and with the resource's.
    configs: [String; 2],
    /// The answer to so many statements.
    landed: Vec<String>,
}

impl Stamped {
    /// So many buckets.
    pub fn with(ns: &NamespaceId, buckets: usize) -> Result<Stamped, Failure> {
        let (mut items, mut starts) = (String::new(), vec![0]);
        for index in 0..buckets {
            let id = BucketId {
                entity: format!("user-{index}").parse()?,
                resource: world::RESOURCE.parse()?,
                shard: 0,
            };
            write!(items, r#",{{"PK":{{"S":"{}"}}}}"#, id.pk(ns))?;
            starts.push(items.len());
        }
        let resource = format!("{ns}/RESOURCE#{}", world::RESOURCE);
        let config = json!({
            "PK": { "S": resource }, "SK": { "S": "#CONFIG" }, "disabled": { "BOOL": true }
        });
        let configs = [vec![], vec![config]];
        let landed = (0..=STAMPS_PER_BATCH).map(|statements| {
            let answers = vec![json!({ "TableName": world::TABLE }); statements];
            json!({ "Responses": answers }).to_string()
        });
        Ok(Stamped {
            items,
            starts,
            resource,
            configs: configs
                .map(|found| json!({ "Responses": { world::TABLE: found } }).to_string()),
            landed: landed.collect(),
        })
    }

    /// The answer to one request, which is read no further than it must be: the client runs on the same
    /// processors.
    pub fn answer(&self, operation: &str, asked: &str) -> Result<String, Failure> {
        match operation {
            "Query" => self.page(&serde_json::from_str(asked)?),
            // Of all config asked for, the resource's alone is there.
            "BatchGetItem" => Ok(self.configs[usize::from(asked.contains(&self.resource))].clone()),
            "BatchExecuteStatement" => {
                let statements = asked.matches(r#""Statement":"#).count();
                let landed = self.landed.get(statements);
                Ok(landed.ok_or("too many statements")?.clone())
            }
            other => Err(format!("the stand-in has no answer to {other}").into()),
        }
    }

    /// A page of buckets that show nothing.
    fn page(&self, asked: &Value) -> Result<String, Failure> {
        // A page's end says how many buckets come before it.
        let place = |key: &Value| key["S"].as_str().map(str::parse::<usize>).transpose();
        let start = place(&asked["ExclusiveStartKey"]["GSI2SK"])?.unwrap_or(0);
        let most = place(&asked["ExpressionAttributeValues"][":end"])?;
        let most = most.unwrap_or(self.starts.len() - 1);
        let page = asked["Limit"]
            .as_u64()
            .map_or(PAGE, |limit| PAGE.min(limit as usize));
        let end = most.min(start + page);
        let count = end - start;
        let items = self.items[self.starts[start]..self.starts[end]].trim_start_matches(',');
        let next = match end < most {
            true => format!(r#","LastEvaluatedKey":{{"GSI2SK":{{"S":"{end}"}}}}"#),
            false => String::new(),
        };
        Ok(format!(
            r#"{{"Items":[{items}],"Count":{count},"ScannedCount":{count}{next}}}"#
        ))
    }
}
