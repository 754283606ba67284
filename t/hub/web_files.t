#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The web pages of a Hub in a browser: files of each kind that web.t does not
# show, hostile notebooks and names, a dropped folder, an upload that is paused
# and resumed, and the settings of a repo.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Pages;
use Test::Xet::Process qw/ root run_command slurp spew wait_for /;
use Test::Xet::Real;

use JSON::PP qw/ encode_json /;

start_pages();

my $evil = '<img src=x onerror="document.title=\'evil\'">'
	. '<script>document.title = "evil"</script>';
my $zt = root() . '/../shared/data/ztensor/v1.1-edge/c01-valid-base.zt';

create('files', 0);

SKIP: {
	skip 'no Chromium', 1 unless $web;

	visit('/');
	commit('files', 'all kinds', 'README.md' => "# Files\n", files());

	viewers();
	text_lines();
	sign_in();
	paused();
	dropped();
	settings();

	$web->close();
}

is(join('', grep { index($_, $token{admin}) >= 0 } $t->log(),
	slurp($t->dir() . '/access.log')), '', 'the token is in no log');

$t->allow(qr/ xet: (?:4\d\d) /);
$t->done();

# --------------------------------------------------------------------------

sub files {
	my %files = ('book.ipynb' => notebook(), 'sound.wav' => wav(),
		'film.webm' => film(), 'model.gguf' => gguf(),
		'rows.parquet' => parquet(),
		'bad.safetensors' => pack('Q<', 2**40) . '{}',
		'bad.gguf' => 'GGUF' . pack('VQ<Q<', 3, 2**60, 2**60),
		'bad.parquet' => 'PAR1' . "\0" x 20 . pack('V', 2**31) . 'PAR1',
		'rows.jsonl' => '{"a":1,"b":"' . ($evil =~ s/"/\\"/gr)
			. "\"}\n{\"a\":2}\n",
		'deep.json' => '[' x 100_000,
		'lines.txt' => join('', map { "line $_\n" } 1 .. 3000),
		'binary.bin' => join('', map { chr($_ * 167 % 256) }
			1 .. 300_000));

	$files{'tensor.zt'} = slurp($zt);

	return %files;
}

sub notebook {
	return encode_json({ nbformat => 4, metadata => {}, cells => [
		{ cell_type => 'markdown', source => [ "# Title\n", $evil ] },
		{ cell_type => 'code', source => 'print("hi")', outputs => [
			{ output_type => 'stream', text => [ 'seen ', $evil ] },
			{ output_type => 'display_data', data => {
				'text/html' => $evil,
				'application/javascript' =>
					'document.title = "evil"',
				'image/svg+xml' => "<svg>$evil</svg>",
				'text/plain' => 'plain one' } } ] } ] });
}

# A second of a tone.

sub wav {
	my $data = join('', map { pack('s<', 8000 * sin($_ / 8)) } 1 .. 8000);

	return 'RIFF' . pack('V', 36 + length($data)) . 'WAVEfmt '
		. pack('VvvVVvv', 16, 1, 1, 8000, 16000, 2, 16)
		. 'data' . pack('V', length($data)) . $data;
}

# A film, recorded by the browser.

sub film {
	my $text = $web->js('new Promise((resolve) => {
		const canvas = document.createElement("canvas");
		const context = canvas.getContext("2d");
		canvas.width = canvas.height = 64;
		const recorder = new MediaRecorder(canvas.captureStream(10),
			{ mimeType: "video/webm" });
		const timer = setInterval(() => {
			context.fillStyle = `hsl(${Date.now() % 360} 80% 50%)`;
			context.fillRect(0, 0, 64, 64); }, 50);
		recorder.ondataavailable = async ({ data }) => {
			clearInterval(timer);
			resolve(Array.from(new Uint8Array(
				await data.arrayBuffer())).join(" ")); };
		recorder.start();
		setTimeout(() => recorder.stop(), 700); })');

	return pack('C*', split(/ /, $text));
}

sub gguf {
	my $text = sub { pack('Q<', length($_[0])) . $_[0] };

	return 'GGUF' . pack('VQ<Q<', 3, 1, 2)
		. $text->('general.architecture') . pack('V', 8)
		. $text->('llama')
		. $text->('general.name') . pack('V', 8) . $text->($evil)
		. $text->('blk.0.weight') . pack('VQ<Q<VQ<', 2, 32, 4, 0, 0)
		. "\0" x 1024;
}

# Written by pyarrow.

sub parquet {
	my $file = $t->dir() . '/rows.parquet';
	my $python = Test::Xet::Real::build() . '/clients/datasets/bin/python';
	my ($status, $out) = run_command([ $python, '-c', <<'EOF', $file ]);
import sys
import pyarrow
import pyarrow.parquet

pyarrow.parquet.write_table(pyarrow.table({
    "number": list(range(1000)),
    "<b>name": ["row %d" % i for i in range(1000)]}), sys.argv[1])
EOF

	is($status, 0, 'pyarrow') or diag($out);

	return slurp($file);
}

sub viewers {
	my %shows = ('book.ipynb' => qr/plain one/, 'rows.jsonl' => qr/"?a"?/,
		'model.gguf' => qr/blk\.0\.weight/,
		'rows.parquet' => qr/<b>name/, 'tensor.zt' => qr/zTensor/,
		'bad.safetensors' => qr/\w/, 'bad.gguf' => qr/\w/,
		'bad.parquet' => qr/\w/, 'deep.json' => qr/\w/,
		'binary.bin' => qr/SHA-256/i, 'sound.wav' => qr/Audio/,
		'film.webm' => qr/Video/);

	for my $file (sort keys %shows) {
		look("/alice/files/blob/main/$file",
			'file-' . $file =~ s!\W!_!gr);
		shows($shows{$file}, "$file: is shown");
		is($web->js('document.querySelectorAll("main script,'
			. ' main [onerror], main iframe").length'), 0,
			"$file: nothing that acts");
	}

	visit('/alice/files/blob/main/book.ipynb');
	shows(qr/seen <img/, 'notebook: HTML in an output is text');

	for my $case ([ 'sound.wav', 'audio', 1 ],
		[ 'film.webm', 'video', 0 ])
	{
		my ($file, $node, $seconds) = @$case;

		visit("/alice/files/blob/main/$file");
		ok(wait_for(20, sub { $web->js("document.querySelector("
			. "'main $node')?.readyState >= 1") }),
			"$file: the browser plays it");
		is($web->js("document.querySelector('main $node').duration"),
			$seconds, "$file: seconds") if $seconds;
	}

	visit('/alice/files/blob/main/rows.parquet');
	shows(qr/1,000/, 'Parquet: rows');
	visit('/alice/files/blob/main/binary.bin');
	shows(qr/300,000|293 KB|300 KB/, 'binary: size');
}

# Lines of a text are links, and a link shows its line.

sub text_lines {
	visit('/alice/files/blob/main/lines.txt#L2500');
	shows(qr/line 2500\n/, 'text: a link to a line');
	ok(wait_for(10, sub { $web->js('(() => { const node =
		document.getElementById("L2500"); if (!node) return false;
		const box = node.getBoundingClientRect();
		return box.top >= 0 && box.bottom <= innerHeight; })()') }),
		'text: the line is in view');
}

sub sign_in {
	press('#sign-in');
	set('dialog input[type=password]', $token{admin});
	press('dialog button', 'Sign in');

	# the page is loaded anew

	ok(wait_for(20, sub { eval { $web->js(
		'!!document.querySelector("#account summary")') } }),
		'signed in');
}

# An upload is paused, and continued: each file is sent once.

sub paused {
	my %data = map { ("part$_.bin" => join('', map { pack('N',
		$_ * 2654435761 % 2**32) } $_ * 1_000_000 .. $_ * 1_000_000
		+ 700_000)) } 1 .. 5;

	spew($t->dir() . "/$_", $data{$_}) for keys %data;

	visit('/alice/files/upload/main/parts');
	$web->call('Network.emulateNetworkConditions', { offline => \0,
		latency => 0, downloadThroughput => -1,
		uploadThroughput => 3_000_000 });

	ok(wait_for(20, sub { $web->js(
		'!!document.querySelector("#upload-files")') }),
		'upload: the page');

	my $node = $web->call('Runtime.evaluate', { expression =>
		'document.querySelector("#upload-files")' });

	$web->call('DOM.setFileInputFiles', { files => [ map {
		$t->dir() . "/$_" } sort keys %data ],
		objectId => $node->{result}{objectId} });
	press('#upload-start');
	shows(qr/Uploading.*\/s/s, 'upload: progress, with the rate');
	press('main button', 'Pause');
	shows(qr/paused/, 'upload: paused');

	my $before = grep { m!"PUT /api/v1/files!i || m!PUT ! }
		split(/\n/, slurp($t->dir() . '/access.log'));

	cmp_ok($before, '<', 5, 'upload: paused before the end');

	$web->call('Network.emulateNetworkConditions', { offline => \0,
		latency => 0, downloadThroughput => -1,
		uploadThroughput => -1 });
	press('#upload-again');

	for my $file (sort keys %data) {
		ok(wait_for(60, sub { $t->get(
			"/alice/files/resolve/main/parts/$file",
			\%alice)->{body} eq $data{$file} }), "resumed: $file");
	}
}

# A folder that is dropped on the page.

sub dropped {
	my $folder = $t->dir() . '/dropped';

	mkdir($_) for $folder, "$folder/inner";
	spew("$folder/one.txt", "one\n");
	spew("$folder/inner/<b>two.txt", "two\n");

	visit('/alice/files/upload/main');

	my $box = $web->js('(() => { const box = document.querySelector('
		. '".upload-drop").getBoundingClientRect(); return [box.x'
		. ' + box.width / 2, box.y + box.height / 2]; })()');
	my %at = (x => $box->[0], y => $box->[1], data => { items => [],
		files => [ $folder ], dragOperationsMask => 1 });

	$web->call('Input.dispatchDragEvent', { type => $_, %at })
		for qw/ dragEnter dragOver drop /;

	shows(qr/2 files/, 'drop: the files of the folder');
	press('#upload-start');

	for my $case ([ 'one.txt', "one\n" ],
		[ 'inner/%3Cb%3Etwo.txt', "two\n" ])
	{
		my ($file, $data) = @$case;

		ok(wait_for(60, sub { $t->get("/alice/files/resolve/main/$file",
			\%alice)->{body} eq $data }), "dropped: $file");
	}
}

sub settings {
	visit('/alice/files/settings');
	$web->js('document.querySelector("main input[name=visibility]'
		. '[value=private]").click()');
	press('main button', 'Save');
	shows(qr/is now private/, 'settings: private');
	is($t->get('/api/models/alice/files')->{status}, 404,
		'settings: hidden from strangers');

	set('main input[name=name]', 'side');
	press('main button', 'Create branch');
	ok(wait_for(20, sub { $t->get('/api/models/alice/files/revision/side',
		\%alice)->{status} == 200 }), 'settings: a branch');

	visit('/alice/files/settings');
	set('main input[name=target]', 'alice/moved');
	press('main button', 'Move');
	ok(wait_for(20, sub { $web->js('location.pathname')
		eq '/alice/moved' }), 'settings: a new name');
	ready('the moved repo');
	is($t->get('/api/models/alice/moved', \%alice)->{status}, 200,
		'settings: moved');

	visit('/alice/moved/settings');
	press('main .dangerous button');
	set('dialog input', 'alice/other');
	press('dialog button', 'Delete');
	ok(wait_for(20, sub { $web->js('document.querySelector("dialog")'
		. '?.innerText.includes("Nothing was deleted")') }),
		'settings: another name deletes nothing');
	is($t->get('/api/models/alice/moved', \%alice)->{status}, 200,
		'settings: still there');
}
