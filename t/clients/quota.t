#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The real hf_xet exceeds a quota: it gives up immediately with a message that
# gives the reason, and uploads again after the quota is removed.  In the
# meantime, other clients continue.

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

my $t = Test::Xet->new(workers => 1, log => 'info', %o);

$t->token_key();
$t->run();
$t->allow(qr/413 quota_exceeded/);

my $endpoint = $t->url('/api');
my $dir = tempdir(CLEANUP => 1);

for my $case ([ 'logical', 'NULL', 5 * $mib ], [ 'stored', $mib, 'NULL' ]) {
	my ($what, @limits) = @$case;
	my $file = make_mix("$dir/$what", length($what), 6 * $mib);

	$t->sql("SELECT xet.quota_set('repo', 'a/$what', NULL, $limits[0],"
		. " $limits[1])");

	my $before = refused();
	my ($info, $text) = upload("a/$what", $file);

	is($info, undef, "$what: refused");
	like($text, qr/413/,
		"$what: the message has the status") or diag($text);
	is(refused() - $before, 1, "$what: not sent again");

	# the other repo has no quota

	($info) = upload("b/$what", $file);
	is($info->[0]{size}, 6 * $mib, "$what: other repos accept uploads");

	$t->sql("SELECT xet.quota_set('repo', 'a/$what', NULL, NULL,"
		. " NULL)");
	($info) = upload("a/$what", $file);
	is($info->[0]{size}, 6 * $mib, "$what: accepted without the quota");
}

$t->done();

# --------------------------------------------------------------------------

sub refused {
	return scalar(() = $t->log() =~ /413 quota_exceeded/g);
}

sub upload {
	my ($repo, $path) = @_;

	my $token = $t->get("/token/write/$repo")->json();
	my $o = { machine => tempdir(CLEANUP => 1), env => {
		XET_TOKEN => $token->{accessToken},
		XET_TOKEN_EXPIRY => $token->{exp}
	} };

	open(my $stderr, '>&', \*STDERR) or die "dup: $!\n";
	open(STDERR, '>', "$dir/stderr") or die "stderr: $!\n";

	my $info = eval { hf_xet($o, 'upload', 'session', $endpoint, $path) };

	open(STDERR, '>&', $stderr) or die "dup: $!\n";

	return ($info, slurp("$dir/stderr") . ($@ // ''));
}
