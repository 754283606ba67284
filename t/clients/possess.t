#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The real hf_xet with repos that are isolated from each other.  The same small
# and large files are uploaded to one repo after another, from machines that
# have cached earlier uploads, and by a user with a separate copy of the data.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ slurp /;
use Test::Xet::Real;

use File::Temp qw/ tempdir /;

my $mib = 1048576;

my %o = Test::Xet::Token::repos();
my %log = Test::Xet::Real::log_bytes();

$o{http} .= " $log{http}";

my $t = Test::Xet->new(workers => 2, log => 'info', %o);

$t->token_key();
$t->run();

my $endpoint = $t->url('/api');
my $dir = tempdir(CLEANUP => 1);

# files of one chunk, some chunks, some xorbs; and a folder of small files

my @large = map { make_mix("$dir/file-$_", $_, $_) } 5000, 3 * $mib,
	20 * $mib;
my @small = map { make_mix("$dir/small-$_", $_ + 1, 300 * $_) } 1 .. 30;
my $bytes = 0;

$bytes += -s $_ for @large, @small;

# each large file has its own session; the small files share a session

sub upload {
	my ($who, $machine) = @_;

	my $token = $t->get("/token/write/$who")->json();
	my $o = { machine => $machine, env => {
		XET_TOKEN => $token->{accessToken},
		XET_TOKEN_EXPIRY => $token->{exp}
	} };

	return map { @{ hf_xet($o, 'upload', 'session', $endpoint, @$_)
		|| [] } } (map { [ $_ ] } @large), \@small;
}

sub sends {
	my ($who, $machine, $name) = @_;

	my $before = uploaded($t);
	my @infos = upload($who, $machine);
	my $sent = uploaded($t) - $before;

	is(scalar @infos, @large + @small, "$name: uploaded");

	my ($repo) = split(/@/, $who);
	my @files = (@large, @small);
	my $good = 0;

	for my $i (0 .. $#infos) {
		my $r = $t->get("/api/v1/files/$infos[$i]{hash}",
			$t->auth('read', $repo));

		$good++ if $r->{status} == 200
			&& $r->{body} eq slurp($files[$i]);
	}

	is($good, @files, "$name: all downloaded intact");

	return $sent;
}

my %machine = map { $_ => tempdir(CLEANUP => 1) } qw/ ann bea zed pat /;

cmp_ok(sends('a/one@ann', $machine{ann}, 'first'), '>', $bytes / 2,
	'first: sent');
cmp_ok(sends('a/two@ann', $machine{ann}, 'second repo'), '<', $bytes / 50,
	'second repo: not sent again');
cmp_ok(sends('a/three@ann', tempdir(CLEANUP => 1), 'another machine'), '<',
	$bytes / 2, 'another machine: dedup shows data of the subject');

# a colleague who has sent none of the data

cmp_ok(sends('a/one@bea', $machine{bea}, 'colleague'), '<', $bytes / 2,
	'colleague: dedup shows data of the repo');
sends('b/own@bea', $machine{bea}, 'his own repo');

# the machine's cache still has the deleted file

my $r = $t->get('/api/v1/files/' . hash_file(slurp($large[0]))->{hash},
	$t->auth('read', 'b/own'));

is($r->{status}, 200, 'the file is readable');
is($t->http('DELETE', '/api/v1/files/'
	. hash_file(slurp($large[0]))->{hash}, $t->auth('delete', 'b/own'))
	->{status}, 204, 'deleted');
sends('b/own@bea', $machine{bea}, 'again after that');

# a stranger with the same data must send it: dedup responses show nothing

cmp_ok(sends('z/z@zed', $machine{zed}, 'stranger'), '>', $bytes / 2,
	'stranger: dedup shows nothing');
cmp_ok(sends('z/y@zed', $machine{zed}, 'his second repo'), '<', $bytes / 50,
	'his second repo: not sent again');

# data of a public repo is known to everyone

$t->sql("select xet.repo_set_public('a/one', true)");
cmp_ok(sends('p/one@pat', $machine{pat}, 'public'), '<', $bytes / 2,
	'public: dedup shows the data');
$t->sql("select xet.repo_set_public('a/one', false)");
sends('p/two@pat', $machine{pat}, 'no longer public');

# clients request grants before they send xorbs

like(slurp($t->dir() . '/bytes.log'), qr!POST /api/v1/xorb-grants/\S+ 404!,
	'grants are requested');

$t->done();
