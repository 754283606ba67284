#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# PUT of a file by several threads: its pieces are cut, packed, placed and
# digested by different jobs.  Whatever the number of threads, the size of the
# pieces, and the parts of the file that are known, the file has the right
# hashes and comes back.  Wrong digests, refused jobs and disconnects leave
# nothing behind.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

use Digest::SHA qw/ sha256 sha256_hex /;
use MIME::Base64 qw/ encode_base64 /;
use Time::HiRes qw/ sleep /;

my $mib = 1048576;
my $seed = 100;

# One location for each size of pieces.  A body of one piece takes one thread.

my @pieces = qw/ 16k 64k 256k 64m /;

my $conf = Test::Xet::default_conf();

my $t = Test::Xet->new(conf => $conf, workers => 1, log => 'info',
	pg_params => 'lock_timeout=5m', timeout => 600,
	main => 'thread_pool tiny threads=8;',
	directives => { xet_thread_pool => 'tiny' },
	server => join('', map { <<"EOC" } @pieces));
location /$_/ {
            xet_api;
            xet_api_base /$_;
            xet_auth off;
            xet_body_buffer $_;
            client_body_buffer_size $_;
            client_max_body_size 1g;
        }

EOC

$t->run();

sub pool {
	my ($pool) = @_;

	$t->write_conf($conf, main => "thread_pool tiny $pool;",
		directives => { xet_store => $t->conf_store(),
			xet_thread_pool => 'tiny' });
	$t->reload();
}

sub put {
	my ($piece, $data, %o) = @_;

	return $t->http('PUT', "/$piece/v1/files", $o{headers} || {}, \$data,
		timeout => 120);
}

# Uploads a file, checks the hashes in the response, and reads the file back.
# Returns the number of new bytes.

sub is_stored {
	my ($piece, $data, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $r = put($piece, $data);
	my $hash = hash_file($data)->{hash};

	is("$r->{status} " . ($r->{status} == 200 ? $r->json()->{hash} . ' '
		. $r->json()->{sha256} : $r->{body}),
		"200 $hash " . sha256_hex($data), "$name: hashes");
	ok($t->get("/$piece/v1/files/$hash", {}, timeout => 120)->{body}
		eq $data, "$name: comes back");

	return $r->{status} == 200 ? $r->json()->{new_bytes} : -1;
}

sub clean {
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok(wait_for(20, sub { !$t->temp_files() }),
		"$name: no temporary files");
}

# Returns new bytes, by turns noise and lines of text.

sub mixed {
	my ($size) = @_;

	my $data = '';

	while (length($data) < $size) {
		$seed++;
		$data .= random_bytes($seed, 150000) . join('', map {
			"line $_ of the text with the number $seed\n"
		} 1 .. 5000);
	}

	return substr($data, 0, $size);
}

# --------------------------------------------------------------------------
# new files

my @sizes = (1, 65536, 65537, 131072, 262144, 786433, 2 * $mib);

for my $threads (1, 2, 8) {
	pool("threads=$threads");

	for my $piece (@pieces) {
		for my $size (@sizes) {
			my $name = "$threads threads, pieces of $piece, $size";
			my $data = mixed($size + 16);

			is(is_stored($piece, $data, $name), $size + 16,
				"$name: is new");
		}
	}

	clean("$threads threads");
}

# --------------------------------------------------------------------------
# new and known parts, and two xorbs

my $data = mixed(80 * $mib);

is(is_stored('256k', $data, 'two xorbs'), length($data),
	'two xorbs: are new');
is(is_stored('64k', $data, 'again'), 0, 'again: nothing is new');

# known and new parts by turns; each part needs an indexed chunk

my @parts = map { substr($data, $_ * 20 * $mib, 16 * $mib) } 0 .. 2;
my $by_turns = join('', map { ($_, mixed(2 * $mib)) } @parts, $data);

cmp_ok(is_stored('16k', $by_turns, 'by turns'), '<',
	length($by_turns) - 70 * $mib, 'by turns: most is known');

# new bytes that occur twice in the same file

my $twice = mixed(8 * $mib);

cmp_ok(is_stored('64k', $twice . $twice, 'twice'), '<', 9 * $mib,
	'twice: is stored once');

# --------------------------------------------------------------------------
# a wrong digest: nothing is registered, and the right one is accepted then

my $files = 'SELECT count(*) FROM xet.files';

for my $piece (@pieces) {
	my $data = mixed(3 * $mib);
	my $before = $t->sql($files);
	my %wrong = ('Content-Digest' => 'sha-256=:'
		. encode_base64(sha256("${data}x"), '') . ':');
	my %right = ('Content-Digest' => 'sha-256=:'
		. encode_base64(sha256($data), '') . ':');

	my $r = put($piece, $data, headers => \%wrong);

	is("$r->{status} $r->json()->{error}{code}" =~ s/ .*//r, '400',
		"$piece: a wrong SHA-256") or diag($r->{body});
	is($t->sql($files), $before, "$piece: no file");
	is(put($piece, $data, headers => \%right)->{status}, 200,
		"$piece: the right one");
	is($t->sql($files), $before + 1, "$piece: one file");
}

clean('a wrong digest');

# --------------------------------------------------------------------------
# clients that disconnect, at any time, also while a statement is held

my $before = $t->sql($files);

$data = mixed(8 * $mib);

for my $i (0 .. 19) {
	my $lock = $i % 4 ? undef : $t->pg_lock('xet.chunks');
	my $c = $t->http_start('PUT', "/$pieces[ $i % 3 ]/v1/files",
		{ 'Content-Length' => length($data) }, undef, timeout => 1);

	$c->send(substr($data, 0, 1 + int(rand($i * 300000))));
	sleep(rand(0.05));
	$c->abort();

	$lock->unlock() if $lock;
}

clean('disconnects');
is($t->sql($files), $before, 'disconnects: no file');

# several at once, of the same file and of others; one more thread than pieces

my @many = map { mixed(6 * $mib) } 1 .. 3;
my @c = map {
	my $d = $many[ $_ % 3 ];
	my $c = $t->http_start('PUT', "/$pieces[ $_ % 3 ]/v1/files",
		{ 'Content-Length' => length($d) });
	[ $c, $d, 0 ]
} 0 .. 8;

for my $pos (map { $_ * 300000 } 0 .. 20) {
	for (@c) {
		my $part = substr($_->[1], $pos, 300000);
		$_->[0]->send($part) if length($part);
	}
}

for (@c) {
	my $r = $_->[0]->response('PUT', timeout => 60);

	is("$r->{status} " . ($r->json()->{sha256} // ''),
		'200 ' . sha256_hex($_->[1]), 'at once');
	$_->[0]->close();
}

# --------------------------------------------------------------------------
# a queue that is full: 503, or 200, and a retry succeeds

pool('threads=1 max_queue=3');

@many = map { mixed(2 * $mib) } 1 .. 4;
@c = map {
	my $d = $many[ $_ % 4 ];
	[ $t->http_start('PUT', '/16k/v1/files',
		{ 'Content-Length' => length($d) }), $d ]
} 0 .. 11;

for my $pos (0 .. 15) {
	$_->[0]->send(substr($_->[1], $pos * 131072, 131072)) for @c;
}

my %answers;

for (@c) {
	my $r = $_->[0]->response('PUT', timeout => 60);

	$answers{$r->{status} || $r->{error}}++;
	$_->[0]->close();
}

ok($answers{503}, 'a full queue: uploads are refused');
is(join(' ', grep { !/^(?:200|503)$/ } keys %answers), '',
	'a full queue: 200 or 503') or diag(explain(\%answers));

for my $d (@many) {
	ok(wait_for(30, sub { put('16k', $d)->{status} == 200 }),
		'a full queue: a retry succeeds');
}

clean('a full queue');

$t->done();
