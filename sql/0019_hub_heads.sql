-- compatible from 14

-- Lists of a Hub read what they show.

-- What holds at the last commit of a line, by path and by folder: a path that
-- was committed ten thousand times is ten thousand rows, of which a page of the
-- root shows one.

CREATE INDEX hub_paths_now ON xet.hub_paths (repo_id, line, path)
    WHERE till = 2147483647;

CREATE INDEX hub_paths_now_folder
    ON xet.hub_paths (folder, repo_id, line, path)
    WHERE till = 2147483647;


-- Repos of a kind, and of an owner, the last to change first.

CREATE INDEX hub_repos_changed
    ON xet.hub_repos (kind, changed_at DESC, id DESC);

CREATE INDEX hub_repos_owner
    ON xet.hub_repos (kind, lower(owner), changed_at DESC, id DESC);
