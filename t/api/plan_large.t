#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Plans of very many terms: they follow the same rules as small plans, and use a
# bounded amount of memory, however slow the client.  If a plan can't be
# completed, the status of the response is an error.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;
use Test::Xet::Process qw/ wait_for /;

my $t = Test::Xet->new(workers => 1, server => <<'EOF');
location /few/ {
            xet_api;
            xet_auth        off;
            xet_api_base    /few;
            xet_plan_terms  9000;
        }

        location /groups/ {
            xet_api;
            xet_auth         off;
            xet_api_base     /groups;
            xet_url_ranges   512;
            xet_plan_buffer  256k;
        }
EOF

$t->run();
$t->fds_mark();

my ($worker) = $t->worker_pids();

# --------------------------------------------------------------------------
# 10,000 terms of two chunks, from four xorbs, many of them repeated

my @xorbs = map { send_xorb($t, mix($_, 600000), scheme => 'none',
	sizes => [ 1000 ]) } 1 .. 4;

srand(5);

my $file = register_file($t, [ map {
	my $start = 3 * int(rand(60));
	[ $xorbs[int(rand(4))], $start, $start + 2 ]
} 1 .. 10000 ]);

my $size = $file->{size};
my $middle = int($size / 2);

for ([ '/api', 1 ], [ '/api', 2 ], [ '/groups', 2 ],
	[ '/api', 2, 1, $size - 2 ], [ '/groups', 2, 1500, $size - 1501 ],
	[ '/api', 1, 2000, $size - 2001 ], [ '/api', 2, $middle, $middle ],
	[ '/api', 2, $size - 1, $size - 1 ],
	[ '/api', 2, $size - 5000, $size + 5000 ])
{
	my ($base, $version, @range) = @$_;

	# conf/xet_bucket.conf only supports URLs with one range

	next if $base eq '/groups' && $t->s3();

	my $d = $t->download($file->{hash}, size => $size, base => $base,
		version => $version, twice => 0,
		@range ? (range => \@range) : ());
	my $name = "$base, version $version, " . (@range ? "bytes @range"
		: 'whole');

	is_deeply($d->{errors}, [], "$name: rules");
	ok($d->{data} eq (@range ? substr($file->{data}, $range[0],
		$range[1] - $range[0] + 1) : $file->{data}), "$name: data");
}

my $path = "reconstructions/$file->{hash}";

for my $method (qw/ HEAD GET /) {
	my $r = $t->http($method, "/api/v2/$path", {}, undef, timeout => 60);

	is($r->{status}, 200, "$method: status");
	is($r->header_value('Cache-Control'), 'private, no-store',
		"$method: Cache-Control");
	is(length($r->{body}) > 1000000, $method eq 'GET', "$method: body");
}

is($t->get("/api/v2/$path", { Range => "bytes=$size-" })->{status}, 416,
	'a range that begins at the end');

my $other = register_file($t, [ map { [ $xorbs[$_ % 4], 0, 5 ] } 1 .. 300 ]);
my $r = $t->get("/api/v1/reconstructions?file_id=$other->{hash}"
	. "&file_id=$file->{hash}", {}, timeout => 60);

is($r->{status}, 200, 'batch: status');
is_deeply($r->json()->{files}{$_->{hash}},
	$t->get("/api/v1/reconstructions/$_->{hash}")->json()->{terms},
	'batch: terms') for $file, $other;

# --------------------------------------------------------------------------
# more terms than allowed

for my $uri ("/few/v1/$path", "/few/v2/$path",
	"/few/v1/reconstructions?file_id=$file->{hash}")
{
	$r = $t->get($uri);

	is($r->{status}, 413, "$uri: status");
	is($r->json()->{error}{code}, 'too_many_terms', "$uri: code");
	like($r->json()->{error}{message}, qr/request ranges/, "$uri: advice");
}

$t->allow(qr/too_many_terms/);

is($t->get("/few/v2/$path", { Range => 'bytes=0-10000000' })->{status}, 200,
	'a range of the same file');

# --------------------------------------------------------------------------
# faults between two batches

sub between {
	my ($name, $body, $status, $code) = @_;

	my $old = $t->sql('SELECT pg_get_functiondef('
		. "'xet.file_terms'::regproc)");

	$t->sql(<<"EOF");
CREATE OR REPLACE FUNCTION xet.file_terms(file bytea, first_byte bigint,
    last_byte bigint, any_repo boolean, repo text)
    RETURNS TABLE (size bigint, first_offset bigint, packed bytea)
    LANGUAGE plpgsql
AS \$\$
BEGIN
    IF first_byte > 0 THEN
        $body
    END IF;
    RETURN QUERY
    SELECT f.size, t.first_offset, t.packed
      FROM xet.files f JOIN xet.terms t ON t.file_id = f.id
     WHERE f.hash = file_terms.file
     ORDER BY 2 LIMIT 8;
END;
\$\$
EOF

	my $r = $t->get("/api/v2/$path", {}, timeout => 60);

	is($r->{status}, $status, "$name: status");
	is($r->json()->{error}{code}, $code, "$name: code");

	$t->sql($old);
}

between('the file is deleted', 'RETURN;', 404, 'file_not_found');
between('a statement fails', "RAISE EXCEPTION 'no';", 500, 'internal_error');
between('terms are missing', <<'EOF', 500, 'internal_error');
RETURN QUERY SELECT f.size, t.first_offset, t.packed
          FROM xet.files f JOIN xet.terms t ON t.file_id = f.id
         WHERE f.hash = file AND t.first_offset > first_byte
         ORDER BY 2 LIMIT 8;
        RETURN;
EOF
between('other terms', '', 503, 'overloaded');
between('PostgreSQL dies', 'PERFORM pg_terminate_backend(pg_backend_pid());',
	503, 'database_unavailable');

$t->allow(qr/internal_error|database_unavailable|PostgreSQL|terminat|no$/);

wait_for(30, sub { $t->get("/api/v2/$path")->{status} == 200 })
	or fail('the server works again');

# --------------------------------------------------------------------------
# 1,600,000 terms, of which no two are adjacent, and slow clients

my $large = insert_file($t, 1, 1600000, 1000);
my $uri = "/api/v2/reconstructions/$large->{hash}";
my $batch = "/api/v1/reconstructions?file_id=$large->{hash}"
	. "&file_id=$file->{hash}";

my $before = $t->rss($worker);
my @slow = map { $t->http_start('GET', $_, {}, undef, rcvbuf => 4096) }
	($uri) x 2, ($batch) x 2;
my @heads = map { $_->read_some(1000, 240) } @slow;

is(scalar(grep { m!\AHTTP/1.1 200 ! } @heads), 4, 'slow clients: answers');

my $grown = $t->rss($worker) - $before;

# memory: a plan's buffer and an output buffer for each client; a plan in memory
# would take 80 MB

diag("4 slow clients of 1,600,000 terms: $grown KiB more");
cmp_ok($grown, '<', 16384, 'slow clients: memory');

is($t->get('/api/health')->{status}, 200, 'other requests work');

# a response that has begun does not depend on PostgreSQL

my $c = $t->http_start('GET', "/api/v2/$path", {}, undef, rcvbuf => 16384);

$c->{buffer} = $c->read_some(1, 60) . $c->{buffer};
$t->pg_stop('immediate');
$t->allow(qr/PostgreSQL/);

is(scalar(@{ $c->response('GET', timeout => 60)->json()->{terms} }), 10000,
	'a response continues without it');
$c->close();

is($t->get("/api/v2/$path")->{status}, 503,
	'no new response begins');
$t->pg_start();

# clients that disconnect while the server makes or sends their plan

$_->abort() for @slow;

wait_for(30, sub { $t->get("/api/v2/$path")->{status} == 200 })
	or fail('the server works again');

$_->abort() for map { $t->http_start('GET', $_) } $uri, $batch;

for my $wait (0.05, 0.3, 0.8) {
	my @c = map { $t->http_start('GET', $_) } $uri, $batch;

	select(undef, undef, undef, $wait);
	$_->abort() for @c;
}

is($t->get('/api/health')->{status}, 200, 'disconnected clients');

ok(wait_for(60, sub { !grep { m!/tmp/! && /#\d+|deleted/ }
	values %{ Test::Xet::Process::fds($worker) } }),
	'no temporary file is left open');

$t->done();
