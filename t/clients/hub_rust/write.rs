// Copyright (C) the ngx_http_xet_module authors

// Uploads and downloads with the crate hf-hub 1.  Prints a row for each
// operation, in the form of hub_row.py.

use std::fmt::Debug;
use std::fs::read;
use std::path::PathBuf;

use hf_hub::repository::{AddSource, RepoTypeModel};
use hf_hub::{HFClientSync, HFResult};


fn row<T: Debug>(name: &str, result: HFResult<T>, want: fn(&T) -> bool)
{
    let ok = match &result {
        Ok(value) => want(value),
        Err(_) => false
    };

    let said = format!("{:?}", result).replace(['\\', '"', '\n'], "'");

    println!("{{\"row\": \"{name}\", \"ok\": {ok}, \"said\": \"{said}\"}}");
}


fn is_data(path: &PathBuf) -> bool
{
    read(path).unwrap() == vec![7; 3_000_000]
}


fn main()
{
    let client = HFClientSync::new().unwrap();
    let repo = client.model("me", "rust");
    let moved = client.model("me", "before");

    row("whoami", client.whoami().send(), |u| u.username == "me");
    row("create_repository", client.create_repository().repo_id("me/rust")
        .repo_type(RepoTypeModel).send(), |_| true);
    row("create_repository: exist_ok", client.create_repository()
        .repo_id("me/rust").repo_type(RepoTypeModel).exist_ok(true).send(),
        |_| true);
    row("upload_file", repo.upload_file()
        .source(AddSource::Bytes(b"hello".to_vec().into()))
        .path_in_repo("d/hello.txt").commit_message("one").send(), |_| true);
    row("upload_file: a large file", repo.upload_file()
        .source(AddSource::Bytes(vec![7; 3_000_000].into()))
        .path_in_repo("data.bin").commit_message("two").send(), |_| true);
    row("exists", repo.exists().send(), |v| *v);
    row("file_exists", repo.file_exists().filename("no").send(), |v| !*v);
    row("info", repo.info().send(), |_| true);
    row("list_tree", repo.list_tree().recursive(true).send(),
        |v| v.len() == 3);
    row("list_commits", repo.list_commits().send(), |v| v.len() == 3);
    row("download_file", repo.download_file().filename("data.bin").send(),
        is_data);
    row("snapshot_download", repo.snapshot_download().send(),
        |p| is_data(&p.join("data.bin")));
    row("create_branch", repo.create_branch().branch("dev/1").send(),
        |_| true);
    row("upload_file: to a branch", repo.upload_file()
        .source(AddSource::Bytes(b"on it".to_vec().into())).revision("dev/1")
        .path_in_repo("br.txt").commit_message("three").send(), |_| true);
    row("download_file: of a branch", repo.download_file()
        .filename("br.txt").revision("dev/1").send(),
        |p| read(p).unwrap() == b"on it");
    row("create_tag", repo.create_tag().tag("v1").revision("dev/1").send(),
        |_| true);
    row("list_refs", repo.list_refs().send(), |r| r.branches.len() == 2);
    row("delete_file", repo.delete_file().path_in_repo("data.bin").send(),
        |_| true);
    row("delete_folder", repo.delete_folder().path_in_repo("d").send(),
        |_| true);
    row("list_tree: after it", repo.list_tree().recursive(true).send(),
        |v| v.is_empty());
    row("info: by the old name", moved.info().send(), |_| true);
    row("download_file: by the old name", moved.download_file()
        .filename("config.json").send(),
        |p| read(p).unwrap() == b"{\"field\": 1}");
    row("delete_repository", client.delete_repository().repo_id("me/rust")
        .repo_type(RepoTypeModel).send(), |_| true);
    row("exists: after it", repo.exists().send(), |v| !*v);

    println!("{{\"end\": true}}");
}
