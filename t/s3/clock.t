#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The clocks of nginx and of the store differ by more than the store allows.
# Requests are signed with the store's time and succeed, and the log reports the
# difference.  If the store still refuses requests, clients get 503 and the log
# gives the reason.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::S3;
use Test::Xet::S3Fault;

my $s3 = Test::Xet::S3->new(server => 'moto');
my $fault = Test::Xet::S3Fault->new($s3);

my $t = Test::Xet->new(s3 => $s3, workers => 1, log => 'info',
	s3_endpoint => $fault->endpoint(), s3_params => 'timeout=4s',
	s3_server => '127.0.0.1:' . $fault->port(), server => <<'EOC');

location ~ ^/direct/ {
    xet_api;
    xet_api_base /direct;
    xet_data_mode presigned;
    client_max_body_size 80m;
}

EOC

$t->allow(qr/\[crit\] .* xet: "s3:/);
$t->run();

my $n = 0;
my $told = qr/xet: "s3:[^"]*": the clock of the store is (\d+) s (\w+)/;

for my $seconds (7200, -7200) {
	my $way = $seconds > 0 ? 'ahead' : 'behind';
	my $from = $t->log_size();

	$s3->set_clock($seconds);

	my $file = put();

	is($file->{status}, 200, "$way: an upload");

	# the store's identity is cached for a few seconds

	ok($t->wait_log($told, 20, $from) || (sleep(6), put(),
		$t->wait_log($told, 20, $from))[-1], "$way: the log tells");

	my @told = substr($t->log(), $from) =~ /$told/g;

	cmp_ok(abs($told[0] - 7200), '<', 60, "$way: how much");
	is($told[1], $way, "$way: whose");
	is(scalar @told, 2, "$way: once");

	my $hash = $file->json()->{hash};
	my $entry = entry('/direct', $hash);

	my ($target) = $entry->{url} =~ m!^http://[^/]+(/.*)!;

	is(Test::Xet::HTTP->request($fault->port(), 'GET', $target,
		{ Host => $fault->host(), Range => $entry->{range} })->{status},
		206, "$way: presigned");

	$entry = entry('/api', $hash);
	is($t->get($entry->{url} =~ s!^http://[^/]+!!r,
		{ Range => $entry->{range} })->{status}, 206,
		"$way: by way of nginx");
	is($t->get("/api/v1/files/$hash")->{status}, 200, "$way: a file");
}

my $from = $t->log_size();

$s3->set_clock(0);
is(put()->{status}, 200, 'right again: an upload');
ok($t->wait_log(qr/and of this machine agree again/, 3, $from)
	|| (sleep(6), put(), $t->wait_log(qr/and of this machine agree again/,
		20, $from))[-1], 'right again: told');

# the store rejects requests whatever time they are signed with

my $rows = rows();

$fault->add(do => 'status', status => 403, code => 'RequestTimeTooSkewed');

my $r = put();

is($r->{status}, 503, 'always: 503');
is($r->json()->{error}{code}, 'storage_unavailable', 'always: why');
ok($r->{headers}{'retry-after'}, 'always: Retry-After');
is(rows(), $rows, 'always: no row');
like($t->log(), qr/\[crit\] .*403 RequestTimeTooSkewed/, 'always: the log');

$fault->clear();
ok(wait_for(10, sub { put()->{status} == 200 }), 'always: over');

$t->done();

# --------------------------------------------------------------------------

sub put {
	return $t->put('/api/v1/files', mix(++$n, 400_000));
}

sub rows {
	return $t->sql('SELECT count(*) FROM xet.xorbs');
}

sub entry {
	my ($base, $hash) = @_;

	my ($entry) = map { @$_ } values %{
		$t->get("$base/v1/reconstructions/$hash")->json()
			->{fetch_info} };

	return { url => $entry->{url}, range => 'bytes=' . join('-',
		@{ $entry->{url_range} }{qw/ start end /}) };
}
