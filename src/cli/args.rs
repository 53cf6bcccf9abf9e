//! The arguments: what may be typed, and the help for it. Nothing here acts.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Where the embedded store is when `--local` names no file.
pub(super) const LOCAL_DEFAULT: &str = ".zae-limits/local.db";
/// The table of the embedded store when `--stack` names none.
#[cfg(feature = "local")]
pub(super) const LOCAL_TABLE: &str = "rate-limits";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "zae-limits",
    version,
    about = "Rate limits and kill switches on DynamoDB, declared in a file",
    after_help = "\
Examples:
  zae-limits validate manifests/
  zae-limits --local apply -f manifests/ --yes      in a store of your own, no account needed
  zae-limits -n rate-limits plan -f manifests/      against a table on AWS
  zae-limits -n rate-limits explain user-123 gpt-4

Exit codes: 0 done, 1 error, 2 changes (--detailed-exitcode), 3 a guard refused, 4 stale plan or
concurrent apply, 5 partly applied or pending, 7 you said no, 64 wrong usage, 65 bad manifest, 130/143 signals."
)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// The table, which is named as its stack is [embedded store: rate-limits]
    #[arg(
        short = 'n',
        long,
        value_name = "NAME",
        env = "ZAEL_STACK",
        global = true,
        hide_env_values = true
    )]
    pub(super) stack: Option<String>,
    /// The namespace; with several manifests, only the one that declares it
    #[arg(short = 'N', long, value_name = "NAME", global = true)]
    pub(super) namespace: Option<String>,
    /// The AWS region [default: what the AWS configuration says]
    #[arg(long, value_name = "REGION", global = true)]
    pub(super) region: Option<String>,
    /// A profile of the AWS configuration
    #[arg(long, value_name = "PROFILE", global = true)]
    pub(super) profile: Option<String>,
    /// A DynamoDB that is not AWS's
    #[arg(long, value_name = "URL", global = true)]
    pub(super) endpoint_url: Option<String>,
    /// Use the embedded store in this file; made on first use [default file: .zae-limits/local.db]
    #[arg(
        long, value_name = "PATH", global = true,
        num_args = 0..=1, require_equals = true, default_missing_value = LOCAL_DEFAULT,
    )]
    pub(super) local: Option<PathBuf>,
    /// How the answer on stdout is written
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        global = true
    )]
    pub(super) output: Format,
    /// When to colour; NO_COLOR wins
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub(super) color: Color,
    /// No progress and no notes on stderr
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
    /// Log to stderr what happens, causes of errors included
    #[arg(short, long, global = true)]
    pub(super) verbose: bool,
    /// Never ask
    #[arg(long, global = true)]
    pub(super) no_input: bool,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people.
    Text,
    /// For programs: one document with a `schema_version`.
    Json,
    /// For reviews.
    Markdown,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check manifests, offline: every problem of every file
    Validate(Validate),
    /// Show what an apply would change, danger first. Reads only
    Plan(Plan),
    /// Bring a table to what manifests declare
    Apply(Apply),
    /// Finish what interrupted applies left: their fan-outs, from the table, without a manifest
    Resume(Resume),
    /// Show who decides for an entity and a resource, and what its buckets carry
    Explain(Explain),
    /// Write an event for `cargo lambda invoke --data-file`
    Event {
        /// What the event asks for.
        #[command(subcommand)]
        command: Event,
    },
    /// Work with the embedded store
    #[cfg(feature = "local")]
    Local {
        /// What to do.
        #[command(subcommand)]
        command: Local,
    },
    /// Print a completion script for a shell
    Completions(Completions),
}

impl Command {
    /// The command as a JSON answer names it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Command::Validate(_) => "validate",
            Command::Plan(_) => "plan",
            Command::Apply(_) => "apply",
            Command::Resume(_) => "resume",
            Command::Explain(_) => "explain",
            Command::Event { command } => command.name(),
            #[cfg(feature = "local")]
            Command::Local { command } => match command {
                Local::Seed => "local seed",
                Local::Serve(_) => "local serve",
                Local::Reset(_) => "local reset",
            },
            Command::Completions(_) => "completions",
        }
    }
}

/// `validate`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  zae-limits validate
  zae-limits validate manifests/ extra.limits.yaml
  zae-limits validate --format github manifests/    annotations on a pull request")]
pub(super) struct Validate {
    /// Files, folders (their *.limits.yaml and *.limits.yml), or - for stdin
    #[arg(value_name = "PATH", default_value = "manifests")]
    pub(super) paths: Vec<PathBuf>,
    /// How the findings are written [default: as --output says]
    #[arg(long, value_name = "FORMAT")]
    pub(super) format: Option<Findings>,
}

/// How findings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Findings {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// Workflow commands, which GitHub shows as annotations.
    Github,
}

/// What a plan is made of.
#[derive(Debug, Clone, Args)]
pub(super) struct Planning {
    /// Fan out every declared level, changed or not: mends what was stamped wrong
    #[arg(long)]
    pub(super) full: bool,
    /// What becomes of switches that were set outside the manifest
    #[arg(long, value_name = "WHAT", default_value = "keep")]
    pub(super) out_of_band: OutOfBand,
}

/// What becomes of switches set outside the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutOfBand {
    /// They stay, and are reported.
    Keep,
    /// They are removed.
    Revert,
}

/// The guards that a caller may lift.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Guards")]
pub(super) struct Guards {
    /// Let an empty manifest delete everything that is managed
    #[arg(long)]
    pub(super) allow_empty: bool,
    /// How many levels may be deleted [default: 30 % of the managed ones, or 3]
    #[arg(long, value_name = "N")]
    pub(super) max_delete: Option<usize>,
    /// Take over a namespace that a stack manages
    #[arg(long)]
    pub(super) adopt: bool,
}

/// `plan`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  zae-limits --local plan -f manifests/
  zae-limits -n rate-limits plan -f manifests/ --count-buckets
  zae-limits -n rate-limits plan -f manifests/ --out review.plan    then: apply --plan review.plan
  zae-limits -n rate-limits plan -f manifests/ --detailed-exitcode  exits with 2 on changes")]
pub(super) struct Plan {
    /// A manifest, a folder of them (*.limits.yaml, *.limits.yml), or - for stdin
    #[arg(short, long = "file", value_name = "PATH", required = true)]
    pub(super) file: Vec<PathBuf>,
    /// Count the buckets and entities that each change reaches: reads every one of them
    #[arg(long)]
    pub(super) count_buckets: bool,
    /// Save the plan, for `apply --plan`
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Exit with 2 when there are changes
    #[arg(long)]
    pub(super) detailed_exitcode: bool,
    #[command(flatten)]
    pub(super) planning: Planning,
    #[command(flatten)]
    pub(super) guards: Guards,
}

/// `apply`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  zae-limits --local apply -f manifests/ --yes
  zae-limits -n rate-limits apply -f manifests/tenant-alpha.limits.yaml
  zae-limits -n rate-limits apply --plan review.plan --yes

Ctrl-C stops between two requests: what is owed stays recorded, and the next apply goes on.")]
pub(super) struct Apply {
    /// A manifest, a folder of them (*.limits.yaml, *.limits.yml), or - for stdin
    #[arg(
        short,
        long = "file",
        value_name = "PATH",
        required_unless_present = "plan"
    )]
    pub(super) file: Vec<PathBuf>,
    /// Apply exactly this saved plan, or nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "full", "out_of_band"])]
    pub(super) plan: Option<PathBuf>,
    /// Do not ask; required where nobody can be asked
    #[arg(short, long)]
    pub(super) yes: bool,
    #[command(flatten)]
    pub(super) planning: Planning,
    #[command(flatten)]
    pub(super) guards: Guards,
    #[command(flatten)]
    pub(super) work: Work,
}

/// `resume`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  zae-limits --local resume
  zae-limits -n rate-limits -N tenant-alpha resume

It needs no manifest: a fan-out brings to the buckets what the table's config says. What an apply that
may still be running holds is run beside it, and stays recorded until that apply is certainly gone.")]
pub(super) struct Resume {
    #[command(flatten)]
    pub(super) work: Work,
}

/// How fan-outs run.
#[derive(Debug, Clone, Args)]
pub(super) struct Work {
    /// How long after a switch was stamped the last pass looks for buckets that slipped through
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds, help_heading = "Fan-outs")]
    pub(super) settle: Duration,
    /// The most write batches in flight
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256), help_heading = "Fan-outs")]
    pub(super) concurrency: u16,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "write a number of seconds, such as 1.5")?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(settle) if settle <= Duration::from_secs(600) => Ok(settle),
        _ => Err("write a number of seconds from 0 to 600".to_owned()),
    }
}

/// `explain`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  zae-limits --local explain user-123 gpt-4
  zae-limits -n rate-limits -N tenant-alpha explain user-123 gpt-4 -o json")]
pub(super) struct Explain {
    /// The entity
    pub(super) entity: String,
    /// The resource
    pub(super) resource: String,
}

/// `event`
#[derive(Debug, Subcommand)]
pub(super) enum Event {
    /// A direct invoke that plans
    #[command(after_help = "\
Examples:
  zae-limits event plan -f manifests/ > plan.json
  cargo lambda invoke limits-provisioner --data-file plan.json")]
    Plan(Payload),
    /// A direct invoke that applies
    Apply(Payload),
    /// CloudFormation's Create
    #[command(after_help = "\
Examples:
  zae-limits event create -f manifests/ > create.json
  zae-limits event create -f manifests/ --response-url http://127.0.0.1:9999/answer > create.json")]
    Create(Request),
    /// CloudFormation's Update
    #[command(after_help = "\
Examples:
  zae-limits --local event update -f manifests/ > update.json    finds the resource's id in the store
  zae-limits event update -f manifests/ --physical-id ID > update.json")]
    Update(Existing),
    /// CloudFormation's Delete
    Delete(Existing),
}

impl Event {
    fn name(&self) -> &'static str {
        match self {
            Event::Plan(_) => "event plan",
            Event::Apply(_) => "event apply",
            Event::Create(_) => "event create",
            Event::Update(_) => "event update",
            Event::Delete(_) => "event delete",
        }
    }
}

/// `event plan` and `event apply`
#[derive(Debug, Args)]
pub(super) struct Payload {
    /// A manifest, a folder that holds one (*.limits.yaml, *.limits.yml), or - for stdin
    #[arg(short, long = "file", value_name = "PATH", required = true)]
    pub(super) file: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) planning: Planning,
    #[command(flatten)]
    pub(super) guards: Guards,
}

/// `event create`
#[derive(Debug, Args)]
pub(super) struct Request {
    #[command(flatten)]
    pub(super) payload: Payload,
    /// Where the answer is PUT [default: nowhere, the function only returns it]
    #[arg(long, value_name = "URL")]
    pub(super) response_url: Option<String>,
}

/// `event update` and `event delete`
#[derive(Debug, Args)]
pub(super) struct Existing {
    #[command(flatten)]
    pub(super) request: Request,
    /// The resource's id, as the answer to its Create gave it [default: found by asking the table]
    #[arg(long, value_name = "ID")]
    pub(super) physical_id: Option<String>,
}

/// `local`
#[cfg(feature = "local")]
#[derive(Debug, Subcommand)]
pub(super) enum Local {
    /// Add sample entities and buckets, as clients would have left them
    #[command(after_help = "\
Examples:
  zae-limits --local local seed
  zae-limits --local local seed -N tenant-beta")]
    Seed,
    /// Serve the store over HTTP on loopback, for other clients
    #[command(after_help = "\
Examples:
  zae-limits --local local serve
  zae-limits --local=/var/tmp/limits.db local serve --port 0    any free port")]
    Serve(Serve),
    /// Delete the store
    Reset(Reset),
}

/// `local serve`
#[cfg(feature = "local")]
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// The port; 0 takes any free one
    #[arg(long, value_name = "N", default_value_t = 8000)]
    pub(super) port: u16,
}

/// `local reset`
#[cfg(feature = "local")]
#[derive(Debug, Args)]
pub(super) struct Reset {
    /// Do not ask; required where nobody can be asked
    #[arg(short, long)]
    pub(super) yes: bool,
}

/// `completions`
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}
