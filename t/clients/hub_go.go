// Copyright (C) the ngx_http_xet_module authors

// Downloads the repo of hub_prepare.py with a Go package, go-huggingface.
// Prints a row for each operation, in the form of hub_row.py.

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/gomlx/go-huggingface/hub"
)

type line struct {
	Row  string `json:"row,omitempty"`
	Ok   bool   `json:"ok"`
	Said string `json:"said,omitempty"`
	End  bool   `json:"end,omitempty"`
}

func print(l line) {
	text, _ := json.Marshal(l)
	fmt.Println(string(text))
}

func row(name string, ok bool, err error) {
	l := line{Row: name, Ok: ok && err == nil}

	if err != nil {
		l.Said = err.Error()
	}

	print(l)
}

func open(id string) *hub.Repo {
	return hub.New(id).WithAuth(os.Getenv("HF_TOKEN")).
		WithCacheDir(os.Getenv("HF_HOME")).WithProgressBar(false)
}

func file(name string, repo *hub.Repo, path string, want []byte) {
	local, err := repo.DownloadFile(path)
	data := []byte(nil)

	if err == nil {
		data, err = os.ReadFile(local)
	}

	row(name, bytes.Equal(data, want), err)
}

func main() {
	data := make([]byte, 2097152)

	for i := range data {
		data[i] = byte(i)
	}

	repo := open("me/field")
	err := repo.DownloadInfo(false)

	row("info", err == nil && len(repo.Info().Siblings) == 4, err)
	file("a file", repo, "config.json", []byte("{\"field\": 1}"))
	file("a large file", repo, "d/data.bin", data)
	file("an empty file", repo, "empty", nil)
	file("a file of a branch", open("me/field").WithRevision("dev/1"),
		"d/data.bin", data)
	file("a file, by the old name", open("me/before"), "d/data.bin", data)

	_, err = open("me/no").DownloadFile("config.json")
	row("no such repo", err != nil, nil)

	print(line{End: true, Ok: true})
}
