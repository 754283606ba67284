# Copyright (C) the ngx_http_xet_module authors

"""Tests packages built on huggingface_hub with a Hub.  Prints a row for each
operation (hub_row.py).

    hub_data.py datasets|transformers|safetensors FOLDER
"""

import json
import os
import struct
import subprocess
import sys

from huggingface_hub import HfApi, hf_hub_download, snapshot_download

from hub_row import end, raises, row

api = HfApi()
command, folder = sys.argv[1:]


def is_id(oid):
    return len(oid) == 40


def offline(code):
    """Runs the code in a process that can't reach any server."""

    return subprocess.run([sys.executable, "-c", code], check=True,
                          env={**os.environ, "HF_HUB_OFFLINE": "1",
                               "HF_ENDPOINT": "http://127.0.0.1:9"},
                          capture_output=True, text=True).stdout.strip()


def datasets():
    import pyarrow
    import pyarrow.parquet
    from datasets import Dataset, load_dataset
    from datasets.exceptions import DatasetNotFoundError
    from huggingface_hub import HfFileSystem

    os.makedirs(folder + "/pq/data")

    for i in range(3):
        pyarrow.parquet.write_table(
            pyarrow.table({"a": list(range(i * 100, i * 100 + 100)),
                           "t": ["x%d" % j for j in range(100)]}),
            folder + "/pq/data/train-%05d-of-00003.parquet" % i)

    api.create_repo("me/ds", repo_type="dataset")

    row("upload_folder of parquet files",
        lambda: api.upload_folder(folder_path=folder + "/pq",
                                  repo_id="me/ds", repo_type="dataset").oid,
        is_id)
    row("load_dataset", lambda: len(load_dataset("me/ds")["train"]), 300)
    row("load_dataset: streaming",
        lambda: sum(1 for _ in load_dataset("me/ds",
                                            streaming=True)["train"]), 300)
    row("load_dataset: again", lambda: len(load_dataset("me/ds")["train"]),
        300)
    row("load_dataset: offline", lambda: offline(
        "from datasets import load_dataset as l;"
        "print(len(l('me/ds')['train']))").split()[-1], "300")
    row("load_dataset: data_files",
        lambda: len(load_dataset("me/ds", data_files="data/train-00001-*")
                    ["train"]), 100)
    row("load_dataset: a revision", lambda: len(load_dataset(
        "me/ds", revision=api.dataset_info("me/ds").sha)["train"]), 300)
    row("push_to_hub", lambda: Dataset.from_dict(
        {"q": [1, 2, 3]}).push_to_hub("me/pushed"))
    row("push_to_hub: loaded",
        lambda: load_dataset("me/pushed")["train"]["q"][:], [1, 2, 3])
    row("push_to_hub: again", lambda: Dataset.from_dict(
        {"q": [1, 2, 3, 4]}).push_to_hub("me/pushed"))
    row("push_to_hub: again: loaded",
        lambda: load_dataset("me/pushed", download_mode="force_redownload")
        ["train"]["q"][:], [1, 2, 3, 4])
    row("pyarrow over HfFileSystem: a column", lambda: pyarrow.parquet
        .read_table("datasets/me/ds/data/train-00002-of-00003.parquet",
                    columns=["a"], filesystem=HfFileSystem())["a"][0]
        .as_py(), 200)
    row("load_dataset: one that is not there",
        lambda: load_dataset("me/no"), raises(DatasetNotFoundError))


def tiny():
    """Writes a config and a tokenizer of a tiny model."""

    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig

    path = folder + "/tiny"
    config = BertConfig(hidden_size=32, num_hidden_layers=1,
                        num_attention_heads=2, intermediate_size=16)

    config.save_pretrained(path)

    t = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "b": 2},
                                   unk_token="[UNK]"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.save(path + "/tokenizer.json")

    with open(path + "/tokenizer_config.json", "w") as f:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast",
                   "unk_token": "[UNK]"}, f)

    return config, path


def transformers():
    from transformers import AutoConfig, AutoTokenizer

    config, path = tiny()

    api.create_repo("me/tm")

    row("upload_folder",
        lambda: api.upload_folder(folder_path=path, repo_id="me/tm").oid,
        is_id)
    row("AutoConfig.from_pretrained",
        lambda: AutoConfig.from_pretrained("me/tm").hidden_size, 32)
    row("AutoTokenizer.from_pretrained",
        lambda: AutoTokenizer.from_pretrained("me/tm")("a b a")["input_ids"],
        [1, 2, 1])
    row("AutoTokenizer.from_pretrained: again",
        lambda: AutoTokenizer.from_pretrained("me/tm")("b a")["input_ids"],
        [2, 1])
    row("AutoConfig.from_pretrained: offline", lambda: offline(
        "from transformers import AutoConfig as a;"
        "print(a.from_pretrained('me/tm').hidden_size)").split()[-1], "32")
    row("push_to_hub", lambda: config.push_to_hub("me/tm2"))
    row("push_to_hub: from_pretrained, a revision",
        lambda: AutoConfig.from_pretrained(
            "me/tm2", revision=api.repo_info("me/tm2").sha).hidden_size, 32)
    row("from_pretrained: one that is not there",
        lambda: AutoConfig.from_pretrained("me/no"), raises(OSError))


def safetensors():
    from huggingface_hub import get_safetensors_metadata
    from safetensors import safe_open

    head = json.dumps({"w": {"dtype": "F32", "shape": [2, 2],
                             "data_offsets": [0, 16]}}).encode()
    data = struct.pack("<Q", len(head)) + head \
        + struct.pack("<4f", 1, 2, 3, 4)

    api.create_repo("me/st")

    row("upload_file", lambda: api.upload_file(
        path_or_fileobj=data, path_in_repo="model.safetensors",
        repo_id="me/st").oid, is_id)
    row("get_safetensors_metadata",
        lambda: get_safetensors_metadata("me/st").parameter_count, {"F32": 4})

    def opened():
        with safe_open(hf_hub_download("me/st", "model.safetensors"),
                       framework="np") as f:
            return f.get_tensor("w").tolist()

    row("safe_open of hf_hub_download", opened, [[1, 2], [3, 4]])


{"datasets": datasets, "transformers": transformers,
 "safetensors": safetensors}[command]()
end()
