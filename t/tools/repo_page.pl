#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Renews docs/repo_page.webp, the picture of a repo's page in README.md:
#
#     perl t/tools/repo_page.pl [FILE]
#
# Starts a Hub with the shipped configuration, uploads a small model, and takes
# a picture of its page with Chromium: light, 1280 pixels wide, at most 120 kB.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Browser;
use Test::Xet::Process qw/ root spew wait_for /;
use Test::Xet::Repo;

use JSON::PP ();
use MIME::Base64 qw/ decode_base64 /;

my $file = $ARGV[0] // root() . '/docs/repo_page.webp';
my ($width, $height) = (1280, 836);
my $json = JSON::PP->new()->utf8()->canonical();

my $t = Test::Xet->new();
my $conf = $t->shipped_conf();

$conf =~ s/xet_auth off;/$& xet_hub_owners *;/ or die;
$t->write_conf($conf);
$t->run();

my $card = <<'END';
---
license: apache-2.0
language: [en, de]
library_name: transformers
pipeline_tag: text-generation
base_model: team/harbour-base
datasets: [team/logbooks]
tags: [logistics, small]
---
# Harbour Tiny

Harbour answers questions about shipping documents. It is small enough for a
laptop, and reads English and German.

| test | questions | Harbour Tiny | base model |
|---|---:|---:|---:|
| bills of lading | 1,200 | **91.4 %** | 78.0 % |
| customs forms | 800 | **88.7 %** | 69.5 % |
| dangerous goods | 350 | **94.0 %** | 82.3 % |

## Use it

```python
from transformers import pipeline

ask = pipeline("text-generation", "team/harbour-tiny")
print(ask("Which port does the ship leave from?")[0]["generated_text"])
```

The model was trained for three days on our own logbooks. It must not decide
about dangerous goods without a person.
END

create_repo($t, { organization => 'team', name => 'harbour-tiny' });
commit_files($t, 'team/harbour-tiny', 'First weights', {
	'README.md' => $card,
	'config.json' => $json->encode({ architectures => [
		'LlamaForCausalLM' ], hidden_size => 512,
		num_hidden_layers => 8, vocab_size => 8000 }),
	'model.safetensors' => safetensors(),
	'eval/results.csv' => "test,questions,right\nlading,1200,1097\n",
	'tokenizer.json' => '{"version":"1.0"}' });

my $b = Test::Xet::Browser->new() or BAIL_OUT('needs chromium');

$b->size($width, $height);
$b->call('Emulation.setScrollbarsHidden', { hidden => \1 });
$b->call('Emulation.setEmulatedMedia', { features => [ {
	name => 'prefers-color-scheme', value => 'light' } ] });
$b->open($t->url('/team/harbour-tiny'));

ok(wait_for(30, sub { $b->js('!document.querySelector("main [aria-busy]")
	&& /dangerous goods/.test(document.querySelector("main")?.innerText)
	&& /F16/.test(document.querySelector("main").innerText)') }),
	'the page is complete')
	or diag($b->js('document.querySelector("main").innerText'));

# the address that readers know

$b->js('(function walk(node) { for (const one of node.childNodes)
	one.nodeType === 3 ? one.data = one.data.replaceAll(location.origin,
	"https://xet.example.com") : walk(one); })(document.body)');

my $picture = decode_base64($b->call('Page.captureScreenshot',
	{ format => 'webp', quality => 82 })->{data});

cmp_ok(length($picture), '<=', 120_000, 'the size of the picture');
spew($file, $picture);
$b->close();
$t->done();

# --------------------------------------------------------------------------

# Three weights of each of eight layers.

sub safetensors {
	my (%tensors, $at);

	for my $layer (0 .. 7) {
		for my $name (qw/ self_attn.q_proj self_attn.o_proj mlp.up_proj /) {
			$tensors{"model.layers.$layer.$name.weight"} = {
				dtype => 'F16', shape => [ 64, 64 ],
				data_offsets => [ $at // 0, ($at // 0) + 8192 ]
			};
			$at += 8192;
		}
	}

	my $head = $json->encode(\%tensors);

	return pack('Q<', length($head)) . $head . mix(1, $at);
}
