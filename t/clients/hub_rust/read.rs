// Copyright (C) the ngx_http_xet_module authors

// Downloads the repo of hub_prepare.py with the crate hf-hub 0.4, which has no
// uploads.  Prints a row for each operation, in the form of hub_row.py.

use std::fs::read;
use std::path::PathBuf;

use hf_hub::api::sync::{Api, ApiBuilder, ApiError};
use hf_hub::{Repo, RepoType};


fn row(name: &str, result: Result<bool, ApiError>)
{
    let ok = matches!(result, Ok(true));
    let said = format!("{:?}", result).replace(['\\', '"'], "'");

    println!("{{\"row\": \"{name}\", \"ok\": {ok}, \"said\": \"{said}\"}}");
}


fn api() -> Api
{
    ApiBuilder::from_env()
        .with_token(std::env::var("HF_TOKEN").ok())
        .with_progress(false)
        .build()
        .unwrap()
}


fn at(id: &str, revision: &str) -> Repo
{
    Repo::with_revision(id.into(), RepoType::Model, revision.into())
}


fn is_data(path: PathBuf) -> bool
{
    let data = read(path).unwrap();

    data.len() == 2097152
        && data.iter().enumerate().all(|(i, b)| *b == i as u8)
}


fn main()
{
    let api = api();
    let repo = api.model("me/field".into());

    row("info", repo.info().map(|i| i.siblings.len() == 4
                                    && i.sha.len() == 40));
    row("get", repo.get("config.json")
        .map(|p| read(p).unwrap() == b"{\"field\": 1}"));
    row("get: a large file", repo.get("d/data.bin").map(is_data));
    row("get: again, from the cache", repo.get("d/data.bin").map(is_data));
    row("get: an empty file", repo.get("empty")
        .map(|p| read(p).unwrap().is_empty()));
    row("get: of a branch", api.repo(at("me/field", "dev/1"))
        .get("config.json").map(|p| p.is_file()));
    row("info: of a branch", api.repo(at("me/field", "dev/1")).info()
        .map(|i| i.siblings.len() == 4));
    row("info: by the old name", api.model("me/before".into()).info()
        .map(|i| i.siblings.len() == 4));
    row("get: by the old name", api.model("me/before".into())
        .get("d/data.bin").map(is_data));
    row("get: no such file", Ok(repo.get("no").is_err()));

    println!("{{\"end\": true}}");
}
