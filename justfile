# Recipes for working on zae-limits. `just` lists them.

default:
    @just --list

# Format, lint and test, as CI does.
ci:
    .ci/run

# Format the code.
fmt:
    cargo fmt

# Lint with warnings denied.
lint:
    cargo clippy --all-targets -- -D warnings

# Run every test, or those whose names match.
test *filter:
    cargo test {{filter}}

# Measure, with the Python peer beside where python3 has it.
bench:
    cargo bench

# Apply the example manifests to the embedded store.
local-apply:
    cargo run -- --local apply -f manifests/ --yes

# Fill the embedded store with sample entities and buckets.
local-seed:
    cargo run -- --local local seed

# Serve the embedded store to other clients; prints what they need in their environment.
local-serve *options:
    cargo run -- --local local serve {{options}}

# Build and run the function for `lambda-invoke`, over the table that `local-serve` serves on its usual port.
lambda-watch *options:
    AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000 AWS_REGION=local AWS_ACCESS_KEY_ID=local \
        AWS_SECRET_ACCESS_KEY=local TABLE_NAME=rate-limits \
        cargo lambda watch --no-default-features --features lambda --bin limits-provisioner {{options}}

# Send the function an event of the example manifest: plan, apply, create, update or delete.
lambda-invoke event *options:
    mkdir -p target/events
    cargo run --quiet -- --local event {{event}} -f manifests/ {{options}} > target/events/{{event}}.json
    cargo lambda invoke limits-provisioner --data-file target/events/{{event}}.json

# The function's events from plan to Delete over the embedded table, each answer checked.
local-story:
    cargo build
    python3 tests/deploy/local.py --zae-limits target/debug/zae-limits

# Stacks on an emulated account, the Python client as the judge.
deploy-story:
    cargo test deploy:: -- --nocapture

# Check licences, duplicates and sources of dependencies.
deny:
    cargo deny check
