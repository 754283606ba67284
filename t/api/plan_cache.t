#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet_plan_cache: a plan that is requested again costs PostgreSQL nothing, and
# is the plan that a new request would get.  Plans of other callers, names,
# ranges, versions and locations are others.  After a deletion, a loss of
# rights or a repair on this machine, no worker uses an older plan, not even one
# whose rows were read before; other machines stop within "valid".

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cached;
use Test::Xet::Copies;
use Test::Xet::Files;
use Test::Xet::Metrics;

my ($t, $far) = two_machines('xet_plan_cache zone=plans:4m', <<'EOF');

        location /whole/ {
            xet_api;
            xet_api_base /whole;
            xet_auth off;
            xet_url_mode cacheable;
        }
EOF

$t->allow(qr/xet: 4\d\d /);

my $seed = 0;

# --------------------------------------------------------------------------
# the same plan, without a statement

{
	my $file = upload();
	my $first = recon($file);
	my ($reads, $hits) = counts();

	is($first->{status}, 200, 'a plan');
	is(recon($file)->{body}, $first->{body}, "the same plan, $_")
		for 1 .. 20;

	my ($reads2, $hits2) = counts();

	# a worker may send a statement of its own in the meantime

	is($hits2 - $hits, 20, 'from the cache');
	cmp_ok($reads2 - $reads, '<', 10, 'without statements');
	is_deeply($t->download($file, size => 100_000)->{errors}, [],
		'what clients rely on');
	is($first->header_value('Cache-Control'),
		recon($file)->header_value('Cache-Control'), 'Cache-Control');

	my $head = $t->head("/api/v1/reconstructions/$file");

	is($head->{status}, 200, 'HEAD');
	is($head->{body}, '', 'HEAD: no body');

	for my $path ("/api/v2/reconstructions/$file",
		"/whole/v1/reconstructions/$file",
		"/whole/v2/reconstructions/$file")
	{
		my $r = $t->get($path);

		is($r->{status}, 200, $path);
		isnt($r->{body}, $first->{body}, "$path: another plan");
		is($t->get($path)->{body}, $r->{body}, "$path: again");
	}

	for my $range ('0-999', '0-', '0-99999', '1000-1999', '0-1000') {
		my %h = (Range => "bytes=$range");
		my $r = recon($file, %h);

		is($r->{status}, 200, $range);
		is(recon($file, %h)->{body}, $r->{body}, "$range: again");
		is(substr($t->reconstruct($file, %h)->{plan} ? 'plan' : '', 0),
			'plan', "$range: a plan");
	}

	isnt(recon($file, Range => 'bytes=1000-1999')->{body}, $first->{body},
		'a part is another plan');
	is(recon($file, Range => 'bytes=100000-')->{status}, 416,
		'past the end');

	my $name = recon($file, Host => 'localhost:' . $t->port(8080));

	unlike($first->{body}, qr!//localhost!, 'by address');
	is(recon($file)->{body}, $first->{body}, 'by address, again');
	is($name->{status}, 200, 'by name');
	is(recon($file, Host => 'localhost:' . $t->port(8080))->{body},
		$name->{body}, 'by name, again');
	is(recon('f' x 64)->{status}, 404, 'a missing file');
	is(recon('f' x 64)->{status}, 404, 'a missing file, again');
}

# --------------------------------------------------------------------------
# callers

{
	my $data = data();
	my $file = $t->put('/repo/v1/files', \$data, $t->auth('write', 'a/a'))
		->json()->{hash};

	for my $round (1 .. 2) {
		is(repo_plan($file, 'a/a'), 200, "its repo, $round");
		is(repo_plan($file, 'a/a@ann'), 200, "another subject, $round");
		is(repo_plan($file, 'b/b'), 404, "another repo, $round");
		is(repo_plan($file, ''), 404, "no repo, $round");
		is($t->get("/repo/v1/reconstructions/$file")->{status}, 401,
			"no token, $round");
		is($t->get("/repo/v1/reconstructions/$file", {
			Authorization => 'Bearer x' })->{status}, 401,
			"a bad token, $round");
		is($t->get("/token-api/v1/reconstructions/$file",
			$t->auth('read', ''))->{status}, 200,
			"the store, $round");
	}

	# a file of another repo is let in, by the file itself

	is($t->put('/repo/v1/files', \$data, $t->auth('write', 'b/b'))
		->{status}, 200, 'uploaded to another repo');
	is(repo_plan($file, 'b/b'), 200, 'there at once');

	# out of the repo, at once, for all workers

	is($t->http('DELETE', "/repo/v1/files/$file",
		$t->auth('delete', 'a/a'))->{status}, 204,
		'removed from a repo');

	is(repo_plan($file, 'a/a'), 404, "no longer in the repo, $_")
		for 1 .. 8;

	is(repo_plan($file, 'b/b'), 200, 'the other repo still has it');

	is($t->http('DELETE', '/repo/v1/repo', $t->auth('delete', 'b/b'))
		->{status}, 204, 'a repo is deleted');
	is(repo_plan($file, 'b/b'), 404, "a deleted repo, $_") for 1 .. 8;
}

# --------------------------------------------------------------------------
# a deletion

{
	my $file = upload();

	is(recon($file)->{status}, 200, 'a file') for 1 .. 4;
	is($far->get("/api/v1/reconstructions/$file")->{status}, 200,
		'on the other machine');
	is($t->http('DELETE', "/api/v1/files/$file")->{status}, 204, 'deleted');
	is(recon($file)->{status}, 404, "deleted: $_") for 1 .. 8;
	ok(wait_for(10, sub {
		$far->get("/api/v1/reconstructions/$file")->{status} == 404
	}), 'deleted on the other machine, too');
}

# rows are read, the file is deleted, and then the rows arrive: they are not
# kept

{
	my $file = upload();
	my $gate = $t->pg_session();
	my $name = 'xet.file_terms(bytea, bigint, bigint, boolean, text)';
	my $function = $t->sql(
		"SELECT pg_get_functiondef('$name'::regprocedure)");

	$gate->run('SELECT pg_advisory_lock(4712)');
	$t->sql($function =~ s/file_terms/file_terms_now/gr);
	$t->sql(<<'EOF');
CREATE OR REPLACE FUNCTION xet.file_terms(file bytea, first_byte bigint,
    last_byte bigint, any_repo boolean, repo text)
    RETURNS TABLE (size bigint, first_offset bigint, packed bytea)
    LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    RETURN QUERY SELECT * FROM xet.file_terms_now(file, first_byte, last_byte,
                                                  any_repo, repo);
    PERFORM pg_advisory_xact_lock_shared(4712);
END;
$$;
EOF

	my $late = $t->http_start('GET', "/api/v1/reconstructions/$file");

	ok(wait_for(30, sub { $t->pg_blocked() > 0 }), 'rows are read');
	is($t->http('DELETE', "/api/v1/files/$file")->{status}, 204,
		'and the file is deleted');
	$gate->close();
	is($late->response('GET')->{status}, 200, 'the late response');
	is(recon($file)->{status}, 404, "it is not kept: $_") for 1 .. 4;

	$t->sql($function);
	$t->sql('DROP FUNCTION xet.file_terms_now');
}

# --------------------------------------------------------------------------
# a repair: the plan names the new copy at once

{
	my $data = data();
	my ($x, $y) = map { { %{ make_xorb($data, scheme => $_,
		sizes => [ 8192 ]) }, raw => $data } } 'none', 'lz4';

	is(post($x), 200, 'a xorb');

	my $file = register_file($t, [ [ $x ] ])->{hash};
	my $before = recon($file)->{body};
	my $name = $t->copy($x->{hash});

	$t->cut_copy($name, 1000);
	is(post($y), 200, 'repaired');

	isnt(recon($file)->{body}, $before, "another copy, $_") for 1 .. 4;

	is($t->download($file, size => length($data))->{data}, $data,
		'the bytes of the file');
}

# --------------------------------------------------------------------------
# URLs are as long valid as those of a new plan; a full zone; a reload

{
	$t->write_conf(undef, directives => { xet_url_quantum => '2s',
		xet_url_ttl => '1m' });
	$t->reload();

	my $file = upload();
	my $first = recon($file)->{body};

	ok(wait_for(10, sub { recon($file)->{body} ne $first }),
		'other URLs in the next quantum');
	is_deeply($t->download($file, size => 100_000)->{errors}, [],
		'and they work');

	$t->write_conf(undef, http => Test::Xet::Token::token_directive()
		. "\n    xet_plan_cache zone=few:64k valid=1h;");
	$t->reload();

	my @files = map { upload() } 1 .. 60;
	my $wrong = 0;

	for my $round (1 .. 2) {
		for (@files) {
			my $d = $t->download($_, size => 100_000);

			$wrong++ if @{ $d->{errors} };
		}
	}

	is($wrong, 0, 'more plans than a zone can hold');
	cmp_ok(metrics($t)->{'xet_plan_cache_total{result="full"}'}, '>', 0,
		'a full zone is counted');
}

# --------------------------------------------------------------------------
# configuration

for my $directive (qw/ xet_plan_cache xet_chunk_filter /) {
	for my $bad ('zone=plans', 'zone=plans:1k', 'zone=plans:4m valid=0',
		'zone=plans:4m valid=2h', 'zone=plans:4m valid=x',
		'zone=plans:4m ttl=1s',
		"zone=plans:4m; $directive zone=more:4m",
		'zone=plans:4m; xet_token_cache zone=plans:4m')
	{
		my ($ok, $out) = $t->config_test(undef,
			http => Test::Xet::Token::token_directive()
			. "\n    $directive $bad;");

		ok(!$ok, "refused: $directive $bad");
		like($out, qr/\[emerg\] .*(?:xet_|zone).* in \S+\.conf:\d+$/m,
			"$bad: file and line");
	}
}

$t->done();

# --------------------------------------------------------------------------

sub data { return mix(++$seed, 100_000) }

sub upload {
	my $data = data();

	return $t->put('/api/v1/files', \$data)->json()->{hash};
}

sub post {
	my ($x) = @_;

	return $t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes})
		->{status};
}

sub recon {
	my ($file, %headers) = @_;

	return $t->get("/api/v1/reconstructions/$file", \%headers);
}

sub repo_plan {
	my ($file, $repo) = @_;

	return $t->get("/repo/v1/reconstructions/$file",
		$t->auth('read', $repo))->{status};
}

# Returns the numbers of statements for reads, and of plans from the cache.

sub counts {
	my $m = metrics($t);
	my $reads = 0;

	$reads += $m->{$_} for grep { /^xet_statements_total\{pg_pool="read"/ }
		keys %$m;

	return ($reads, $m->{'xet_plan_cache_total{result="hit"}'});
}
