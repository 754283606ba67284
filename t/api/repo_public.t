#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# When a repo becomes private, all of its files become private, even while a
# shard is being committed to it, and even if PostgreSQL's default is another
# isolation level.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Files;
use Test::Xet::Process qw/ wait_for /;

# --------------------------------------------------------------------------
# the command waits for the commit of a shard

for my $level ('read committed', 'repeatable read', 'serializable') {
	my ($t, $x, $file) = server("default_transaction_isolation = '$level'");

	$t->sql("BEGIN ISOLATION LEVEL READ COMMITTED;"
		. " SELECT xet.repo_set_public('a/a', true); COMMIT");

	# a slow commit

	$t->sql(<<'EOF');
CREATE TABLE public.slow (n integer);
INSERT INTO public.slow VALUES (1);
GRANT SELECT ON public.slow TO public;
CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WHILE EXISTS (SELECT FROM public.slow) LOOP
        PERFORM pg_sleep(0.02);
    END LOOP;
    RETURN NEW;
END;
$$;
CREATE TRIGGER slow BEFORE INSERT ON xet.file_xorbs
    FOR EACH ROW EXECUTE FUNCTION public.slow();
EOF

	my $c = $t->http_start('POST', '/api/v1/shards', {
		'Content-Length' => length($file->{bytes}),
		%{ $t->auth('write', 'a/a') } }, $file->{bytes});

	ok(wait_for(10, sub {
		$t->sql("SELECT count(*) FROM pg_stat_activity"
			. " WHERE wait_event = 'PgSleep'") == 1
	}), "$level: a shard is being committed");

	my $run = xet_start(undef, { env => {
		XET_POSTGRES => $t->conninfo() } }, qw! repo private a/a !);

	ok(wait_for(10, sub {
		$t->sql("SELECT count(*) FROM pg_stat_activity"
			. " WHERE wait_event_type = 'Lock'") == 1
	}), "$level: the command waits");

	# SQL makes the repo private, in a transaction with the default
	# isolation level of the database

	my $sql = $t->pg_session();

	$sql->send("UPDATE xet.repos SET public = false WHERE name = 'a/a'");
	$t->sql('DELETE FROM public.slow');
	is($c->response('POST', timeout => 30)->{status}, 200,
		"$level: the shard");
	is(xet_wait($run)->{code}, 0, "$level: the command");
	eval { $sql->wait() };
	is(private($t, $file), '404 0', "$level: others see nothing of it");

	$t->check();
	$t->remove();
}

# With another isolation level, an UPDATE that has waited for the commit of a
# shard would not see this commit, because the snapshot is older: it is refused.

{
	my ($t) = server("default_transaction_isolation = 'repeatable read'");
	my ($was) = $t->sql("SELECT public FROM xet.repos WHERE name = 'a/a'");

	is($was, 'f', 'by SQL: private');
	is($t->sql(<<'EOF'), 'refused', 'by SQL: another isolation is refused');
DO $$
BEGIN
    UPDATE xet.repos SET public = true WHERE name = 'a/a';
    CREATE TEMP TABLE came AS SELECT 'allowed' AS what;
EXCEPTION WHEN active_sql_transaction THEN
    CREATE TEMP TABLE came AS SELECT 'refused' AS what;
END;
$$;
SELECT what FROM came;
EOF
	$t->check();
	$t->remove();
}

done_testing();

# --------------------------------------------------------------------------

sub server {
	my ($conf) = @_;

	my $t = Test::Xet->new(workers => 1, log => 'info',
		pg_conf => $conf ? "$conf\n" : '',
		Test::Xet::Token::repos());

	$t->token_key();
	$t->run();

	my $x = make_xorb(random_bytes(1, 200000), sizes => [ 50000 ]);

	is($t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes},
		$t->auth('write', 'a/a'))->{status}, 200, 'a xorb');

	return ($t, $x, make_shard({ files => [ { terms => [ {
		xorb => $x->{hash}, start => 0, end => 3 } ] } ],
		xorbs => [ { %$x, raw => '', bytes => '' } ] }));
}

# Returns the status that another repo gets, and the number of public files.

sub private {
	my ($t, $file) = @_;

	return $t->get("/api/v1/files/$file->{files}[0]{hash}",
		$t->auth('read', 'b/b'))->{status} . ' '
		. $t->sql('SELECT count(*) FROM xet.repo_files'
			. ' WHERE public_file IS NOT NULL');
}
