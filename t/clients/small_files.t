#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The real hf_xet uploads many small files, and asks about each of them.  With
# xet_chunk_filter few of these queries reach PostgreSQL, and what is stored is
# still found: by the same caller from another machine, by others of the repo,
# and by nobody else.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Metrics;
use Test::Xet::Process qw/ slurp spew /;
use Test::Xet::Real;

use Digest::SHA qw/ sha256_hex /;
use File::Temp qw/ tempdir /;

my %o = Test::Xet::Token::repos();
my %log = Test::Xet::Real::log_bytes();

$o{http} .= " $log{http}\n    xet_chunk_filter zone=chunks:4m valid=1h;";
$o{locations} .= <<'EOF';

        location /metrics {
            xet_metrics;
        }
EOF

my $t = Test::Xet->new(workers => 2, log => 'info', %o);

$t->token_key();
$t->run();

my $dir = tempdir(CLEANUP => 1);
my $count = 500;
my $endpoint = $t->url('/api');

# two batches of files, each file one chunk

my ($size, @batches) = (0);

for my $batch (0, 1) {
	for my $n (1 .. $count) {
		my $data = mix($batch * $count + $n, 2000 + $n);

		$size += length($data);
		spew("$dir/$batch.$n", $data);
		push @{ $batches[$batch] }, "$dir/$batch.$n";
	}
}

warm('a/a@ann');

my ($asked, $sent) = upload('a/a@ann', $batches[0]);

cmp_ok($sent, '>', $size / 4, 'new files: sent');
cmp_ok($asked, '<', 60, "new files: $asked statements for $count queries");

# the uploads have been added to the filters, which stay in use

($asked, $sent) = upload('a/a@ann', $batches[1]);

cmp_ok($sent, '>', $size / 4, 'further files: sent');
cmp_ok($asked, '<', 60, "further files: $asked statements");

# from other machines: by the same caller, by the same repo, by the subject

for my $who ('a/a@ann', 'a/a@eve', 'c/c@ann') {
	for my $batch (0, 1) {
		($asked, $sent) = upload($who, $batches[$batch]);

		is($sent, 0, "$who: nothing is sent again");
		cmp_ok($asked, '>', 0, "$who: found by PostgreSQL");
	}
}

# a stranger sends everything

warm('b/b@bob');
($asked, $sent) = upload('b/b@bob', $batches[0]);

cmp_ok($sent, '>', $size / 4, 'a stranger: sent');
cmp_ok($asked, '<', 60, "a stranger: $asked statements");

$t->done();

# --------------------------------------------------------------------------

# Sends queries until the filters of the caller answer them.  The client sends
# hundreds while the first filters are made.

sub warm {
	my ($who) = @_;

	my $hits = sub {
		metrics($t)->{'xet_chunk_filter_total{result="hit"}'}
	};
	my $before = $hits->();

	for my $n (1 .. 100) {
		$t->get('/api/v1/chunks/default/'
			. sha256_hex("$who $n"), $t->auth('read', $who));

		return if $hits->() > $before;
	}

	fail("$who: no filter");
}

# Uploads files from a new machine.  Returns the numbers of dedup statements,
# and of the bytes of xorbs that were sent.

sub upload {
	my ($who, $files) = @_;

	my $token = $t->get("/token/write/$who")->json();
	my $before = statements();
	my $sent = Test::Xet::Real::uploaded($t);

	my $info = hf_xet({ machine => tempdir(CLEANUP => 1), env => {
		XET_TOKEN => $token->{accessToken},
		XET_TOKEN_EXPIRY => $token->{exp}
	} }, 'upload', 'session', $endpoint, @$files);

	my @hashes = map { $_->{hash} } @{ $info || [] };
	my $last = $hashes[-1] // '';
	my $r = $t->get("/api/v1/files/$last", $t->auth('read', $who));

	is(scalar(@hashes), scalar(@$files), "$who: all files are uploaded");
	is($r->{body}, slurp($files->[-1], 1), "$who: the last file");

	return (statements() - $before,
		Test::Xet::Real::uploaded($t) - $sent);
}

sub statements {
	my $m = metrics($t);
	my $n = 0;

	$n += $m->{$_} for grep {
		/^xet_statements_total\{pg_pool="(?:dedup|long)"/ } keys %$m;

	return $n;
}
