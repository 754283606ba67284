#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Clients have cached that xorbs are stored, but the server has since removed
# these xorbs.  If the endpoint is configured, the server refuses their shards
# with a message that the user sees.  If it comes with a token, it has a new
# epoch, and their cache does not apply: they send all data, and the file can be
# downloaded.
# Real clients: hf_xet, hf, and @huggingface/hub.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Hub;
use Test::Xet::Process qw/ root run_command /;
use Test::Xet::Real;

use File::Temp qw/ tempdir /;
use IPC::Open2 qw/ open2 /;
use JSON::PP ();

my $size = 8 << 20;
my $whole = 0.8 * $size;             # a part of the file can be compressed
my $more = 100_000;
my $dir = tempdir(CLEANUP => 1);

# A file, and later versions of it.

my @files = (make_mix("$dir/v0", 1, $size));

push @files, insert_into($files[0], $size / 2 + 300_000 * $_,
	make_mix("$dir/new$_", 10 + $_, $more)) for 1 .. 3;

my $told = qr/a term of file [0-9a-f]{64} refers to xorb [0-9a-f]{64}, which (?#
	)is not stored here, or which you may not use; the Xet cache of this (?#
	)machine may still list it: upload again, and if that fails too, (?#
	)remove HF_XET_CACHE \(by default xet in HF_HOME, (?#
	)~\/\.cache\/huggingface\/xet\)/;

# --------------------------------------------------------------------------
# hf_xet

my $t = Test::Xet->new(conf => '', workers => 2, log => 'info',
	allow => [ qr/unknown_xorb/ ], Test::Xet::Real::log_bytes());

sub epoch {
	my ($number) = @_;

	return (http => 'xet_token_key %%DIR%%/token.key;'
		. { Test::Xet::Real::log_bytes() }->{http},
		server => <<"EOF");
location = /token/number {
            xet_token;
            xet_token_scope write;
            xet_token_epoch $number;
        }

        location = /token/short {
            xet_token;
            xet_token_scope write;
            xet_token_lifetime 4s;
            xet_token_epoch $number;
        }

        location /old/ {
            xet_api;
            xet_api_base /old;
            xet_auth off;
            client_max_body_size 80m;

            location /old/v2/ {
                return 404;
            }
        }
EOF
}

$t->token_key();
$t->write_conf(undef, epoch(1));
$t->run();

# Deletes all files, and collects all xorbs as garbage.

sub collect {
	my ($t) = @_;

	$t->sql('DELETE FROM xet.repo_files');
	$t->sql('SELECT xet.file_delete(hash) FROM xet.files '
		. 'WHERE hash IS NOT NULL');
	$t->sql('SELECT xet.gc_files(1000)');
	$t->sql("SELECT xet.gc_xorbs('0', 1000)");

	for (split(/\n/, $t->sql("SELECT encode(hash, 'hex'), copy_id,"
		. ' stored_size FROM xet.gc_copies(1000)')))
	{
		my ($hash, $copy_id) = split(/\|/);

		$t->remove_copy($t->copy(plain_hash($hash)));
		$t->sql("SELECT xet.gc_removed(ARRAY['\\x$hash'::bytea], "
			. "ARRAY[$copy_id])");
	}

	is($t->sql('SELECT count(*) FROM xet.xorbs'), 0, 'collected');
}

sub machine { return tempdir(CLEANUP => 1) }

# Uploads a file.  Returns the result, and the number of xorb bytes sent.

sub upload {
	my ($machine, $where, $file) = @_;

	my $before = uploaded($t);
	my %to = $where =~ m!^/token/! ? (XET_REFRESH_URL => $t->url($where))
		: ();
	my $done = hf_xet({ machine => $machine,
		env => { XET_TELL => 1, %to } }, 'upload', 'session',
		%to ? '' : $t->url($where), $file);

	return ($done, uploaded($t) - $before);
}

sub sent_whole {
	my ($name, $file, $done, $sent) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok(ref $done eq 'ARRAY', "$name: uploaded")
		or return diag(explain($done));
	cmp_ok($sent, '>', $whole, "$name: the complete file was sent");
	comes_back($name, $file, $done);
}

sub comes_back {
	my ($name, $file, $done) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	hf_xet({}, 'download', 'session', $t->url('/api'), $done->[0]{hash},
		$done->[0]{size}, "$dir/out");
	is(sha256_file("$dir/out"), sha256_file($file),
		"$name: downloaded intact");
	unlink("$dir/out");
}

sub refused {
	my ($name, $words, $done, $sent) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	like(ref $done eq 'HASH' && $done->{error}, $words,
		"$name: refused, with the reason");
	cmp_ok($sent, '<', $size / 4,
		"$name: xorbs in its cache were not sent");
}

my %machines = map { $_ => machine() } qw/ fixed old number /;

# an endpoint that does not change

sent_whole('fixed', $files[0], upload($machines{fixed}, '/api', $files[0]));
collect($t);

for my $n (1, 2) {
	refused("fixed, $n", qr/Error: Internal error: $told$/,
		upload($machines{fixed}, '/api', $files[1]));
}

sent_whole('fixed, another cache', $files[1],
	upload(machine(), '/api', $files[1]));
collect($t);

# a server without v2 can send its message only as the reason phrase

sent_whole('v1', $files[0], upload($machines{old}, '/old', $files[0]));
collect($t);
refused('v1', qr/\(400 Unknown Xorb; upload again, or remove (?#
	)HF_XET_CACHE \(~\/\.cache\/huggingface\/xet\)\)/,
	upload($machines{old}, '/old', $files[1]));

# an old client; its endpoint has an epoch, /e1, and later another one, /e2

my %old = (machine => machine(), env => { XET_TELL => 1 },
	python => Test::Xet::Real::build()
		. '/clients/hf_xet-1.1.9/bin/python');

sub upload_old {
	my ($where, $file) = @_;

	my $before = uploaded_old();
	my $done = hf_xet(\%old, 'upload', 'legacy', $t->url($where), $file);

	return ($done, uploaded_old() - $before);
}

sub uploaded_old {
	my $sum = 0;

	$sum += $_ for $t->read_file('bytes.log')
		=~ m!^POST \S*/xorb/\S+ 200 (\d+)\b!mg;

	return $sum;
}

sent_whole('1.1.9', $files[0], upload_old('/api/e1', $files[0]));
collect($t);
refused('1.1.9', qr/\(400 Unknown Xorb; upload again, or /,
	upload_old('/api/e1', $files[1]));
collect($t);
sent_whole('1.1.9, next epoch', $files[1],
	upload_old('/api/e2', $files[1]));
collect($t);

# numbered epochs: uploads that each have their own process, then uploads of one
# process

my $pid;
my $serve = do {
	local $ENV{HF_XET_CACHE} = machine();
	local $ENV{HF_XET_CLIENT_RETRY_BASE_DELAY} = '100ms';
	local $ENV{XET_REFRESH_URL} = $t->url('/token/number');

	$pid = open2(my $from, my $to, client_limit(),
		Test::Xet::Real::build() . '/venv/bin/python',
		root() . '/t/clients/hf_xet_run.py', 'serve', '');

	sub {
		my $before = uploaded($t);

		print $to "$_[0]\n";
		$to->flush();

		return (JSON::PP::decode_json(scalar <$from>),
			uploaded($t) - $before);
	};
};

my @run = (
	[ 'number', sub { upload($machines{number}, '/token/number', @_) } ],
	[ 'number, one process', $serve ]
);

for my $run (@run) {
	sent_whole("$run->[0], 1", $files[0], $run->[1]->($files[0]));
	collect($t);
}

for my $run (@run) {
	sent_whole("$run->[0], collected", $files[1], $run->[1]->($files[1]));
	collect($t) if $run == $run[0];
}

cmp_ok(scalar(() = $t->read_file('bytes.log')
	=~ m!^POST /api/e\d{1,10}/v1/xorbs/!mg), '>', 0,
		'number: with the epoch in the path');

# nothing was collected: in a new epoch, clients send only chunks that no dedup
# response names

for my $case ([ 2, $files[2] ], [ 3, $files[3] ]) {
	my ($number, $file) = @$case;

	$t->write_conf(undef, epoch($number));
	$t->reload();

	my ($done, $sent) = $run[0][1]->($file);

	comes_back("number, $number, a later version", $file, $done);
	cmp_ok($sent, '<', $size / 4, "number, $number: little is sent");
	diag("number, $number: $more of $size bytes are new, sent: $sent");

	($done, $sent) = $run[1][1]->($file);
	comes_back("one process, $number, a later version", $file, $done);
}

kill('TERM', $pid);
waitpid($pid, 0);

# a session in progress keeps its endpoint, even if it fetches a token that
# names the next endpoint

{
	my $from = length($t->read_file('bytes.log'));
	my $new = sub { return substr($t->read_file('bytes.log'), $from) };
	my @mixes = map { make_mix("$dir/mix$_", 20 + $_, 3_000_000) } 1 .. 2;

	my $running = hf_xet_start({ env => { XET_PAUSE => 5,
		XET_REFRESH_URL => $t->url('/token/short') } }, 'upload',
		'session', '', @mixes);

	ok(wait_for(60, sub { $new->() =~ m!/token/short 200! }),
		'session: has a token');
	$t->write_conf(undef, epoch(4));
	$t->reload();

	my $done = hf_xet_wait($running);

	for my $n (0, 1) {
		comes_back("session, file $n", $mixes[$n],
			[ $done ? $done->[$n] : {} ]);
	}

	my %paths = map { $_ => 1 } $new->() =~ m!^POST (/api/\w+)/v!mg;

	like(join(' ', keys %paths), qr!^/api/e\d+\z!,
		'session: all requests to one endpoint');
	cmp_ok(scalar(() = $new->() =~ m!/token/short 200!g), '>', 1,
		'session: has requested new tokens');
}

$t->check();

# --------------------------------------------------------------------------
# clients of a Hub

$t = Test::Xet->new(conf => '', workers => 2, log => 'info',
	allow => [ qr/unknown_xorb/ ]);

# one of the Hub's servers accepts xorbs without storing them

sub hub_conf {
	return Test::Xet::Hub::conf() =~ s!(?<=xet_url_ranges 8;)!<<'EOF'!er;

        location ~ ^/api/(e\d+/)?v1/xorbs/ {
            default_type application/json;
            return 200 '{"was_inserted":true}';
        }
EOF
}

Test::Xet::Hub::prepare($t);
$t->write_conf(hub_conf());
$t->run();

my $hub = Test::Xet::Hub->new($t);
my $home = machine();

sub hub_sent {
	my ($name, $shards) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my @r = $hub->requests();

	cmp_ok(xorb_bytes(@r), '>', $whole,
		"$name: the complete file was sent");
	is(scalar(grep { $_->{uri} =~ m!^/api/e\d+/$shards\z!
		&& $_->{status} == 200 } @r), 1,
		"$name: with the epoch in the path");
}

ok($hub->hf($home, 'upload', 'alice/f', $files[0], 'v0.bin'), 'hf: upload')
	or diag($hub->{printed});
hub_sent('hf', 'v2/shards');
collect($t);

ok($hub->node('alice/n', 'upload', 'v0.bin', $files[0]), 'node: upload');
$hub->requests();
collect($t);

ok($hub->hf($home, 'upload', 'alice/f', $files[1], 'v1.bin'),
	'hf, collected: upload') or diag($hub->{printed});
hub_sent('hf, collected', 'v2/shards');
ok($hub->hf($home, 'download', 'alice/f', 'v1.bin', '--local-dir',
	"$dir/hf"), 'hf, collected: download') or diag($hub->{printed});
is(sha256_file("$dir/hf/v1.bin"), sha256_file($files[1]),
	'hf, collected: downloaded intact');

collect($t);
$hub->requests();
ok($hub->node('alice/n', 'upload', 'v1.bin', $files[1]),
	'node, collected: upload');
hub_sent('node, collected', 'v1/shards');
is($hub->node('alice/n', 'download', 'v1.bin')->{sha256},
	sha256_file($files[1]), 'node, collected: downloaded intact');
ok($hub->node('alice/n', 'edit', 'v1.bin', "1000:2000:$dir/new1"),
	'node: an edit');

my ($status, $out) = run_command([ client_limit(),
	Test::Xet::Real::node_program(), root() . '/t/clients/hub_ops.mjs',
	Test::Xet::Real::build() . '/npm', $hub->url(), 'ranges/x', 'upload',
	'v0.bin', $files[0] ], timeout => 120);

isnt($status, 0, 'node: refused, since its xorb is not stored');
like($out, qr/HubApiError: \[object Object\]: $told/,
	'node: the user sees the reason');

$t->done();
