#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# GET reconstructions?file_id=…: several files in one response, and responses
# too large for one buffer.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

my $t = Test::Xet->new(workers => 1, server => 'xet_batch_max 3;');

$t->run();
$t->fds_mark();

my @files = map { $t->upload(mix($_, 700000), xorb_chunks => 4) } 1 .. 4;
my $empty = '0' x 64;
my $missing = 'a' x 64;

for my $path ('/api/v1/reconstructions', '/api/reconstructions') {
	my $r = batch($path, $files[0], $files[2]);

	is($r->{status}, 200, "$path: status");

	my $json = $r->json();

	is_deeply([ sort keys %{ $json->{files} } ],
		[ sort map { $_->{hash} } @files[0, 2] ], "$path: files");

	for my $file (@files[0, 2]) {
		my $one = $t->get("/api/v1/reconstructions/$file->{hash}")
			->json();

		is_deeply($json->{files}{$file->{hash}}, $one->{terms},
			"$path: terms");

		for my $xorb (keys %{ $one->{fetch_info} }) {
			is_deeply([ map { [ $_->{range}, $_->{url_range} ] }
					@{ $json->{fetch_info}{$xorb} } ],
				[ map { [ $_->{range}, $_->{url_range} ] }
					@{ $one->{fetch_info}{$xorb} } ],
				"$path: ranges");
		}
	}
}

my $r = batch('/api/v1/reconstructions', $files[0], { hash => $missing });

is($r->{status}, 200, 'a missing file: status');
is_deeply([ keys %{ $r->json()->{files} } ], [ $files[0]{hash} ],
	'a missing file is left out');

$r = batch('/api/v1/reconstructions', { hash => $missing });
is($r->{status}, 200, 'only missing files');
is_deeply($r->json(), { files => {}, fetch_info => {} },
	'only missing files: {}');

$r = batch('/api/v1/reconstructions', ($files[1]) x 5);
is_deeply([ keys %{ $r->json()->{files} } ], [ $files[1]{hash} ],
	'the same file several times');

is(batch('/api/v1/reconstructions', @files[0 .. 2])->{status}, 200,
	'as many as allowed');
is(batch('/api/v1/reconstructions', @files)->{status}, 400, 'one more');
is($t->get('/api/v1/reconstructions')->{status}, 400, 'no file_id');
is($t->get('/api/v1/reconstructions?file_id=xyz')->{status}, 400,
	'malformed');
is($t->get("/api/v1/reconstructions?file_id=$missing&x=1")->{status}, 400,
	'another argument');
is(batch('/api/v2/reconstructions', $files[0])->{status}, 404,
	'not in version 2');

# --------------------------------------------------------------------------
# a batch of 100,000 terms: the 40 MB of JSON do not increase the worker's
# memory

my $xorb = make_xorb(random_bytes(9, 1600000), sizes => [ 1000 ]);
my @chunks = @{ $xorb->{chunks} };

is($t->post("/api/v1/xorbs/default/$xorb->{hash}", \$xorb->{bytes})
	->{status}, 200, 'xorb');

srand(5);

my @terms = map {
	my $start = int(rand(@chunks));
	{ xorb => $xorb->{hash}, start => $start, end => $start + 1,
		chunks => [ $chunks[$start] ] }
} 1 .. 100000;

my $shard = make_shard({ files => [ { terms => \@terms } ], xorbs => [] });

is($t->post('/api/v1/shards', \$shard->{bytes}, {}, timeout => 60)
	->{status}, 200, 'shard of 100,000 terms');

my $hash = $shard->{files}[0]{hash};
my ($worker) = $t->worker_pids();

$r = $t->get("/api/v2/reconstructions/$hash", {}, timeout => 60);
is($r->{status}, 200, 'large: status');
is(scalar(@{ $r->json()->{terms} }), 100000, 'large: terms');

my $before = $t->rss($worker);

my @slow = map {
	my $c = $t->http_start('GET', "/api/v2/reconstructions/$hash",
		{}, undef, rcvbuf => 4096);
	$c
} 1 .. 8;

select(undef, undef, undef, 2);

my $grown = $t->rss($worker) - $before;

diag(sprintf('8 slow readers of %d bytes: %d KiB more', length($r->{body}),
	$grown / 1024));
cmp_ok($grown, '<', 8 * length($r->{body}) / 2 + 8 * 6000000,
	'large: slow readers hold no JSON');

is($t->get('/api/health')->{status}, 200, 'large: other requests work');
$_->abort() for @slow;

is(length($t->get("/api/v1/reconstructions/$hash", {}, timeout => 60)
	->{body}) > 1000000, 1, 'large: version 1');

$t->done();

sub batch {
	my ($path, @files) = @_;

	return $t->get("$path?" . join('&', map { "file_id=$_->{hash}" }
		@files));
}
