#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Locks that other sessions hold for a long time: damage is recorded even if the
# heal gives up, unrelated uploads continue, and a repo becomes private even
# while many shards are committed to it.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;
use Test::Xet::Process qw/ wait_for /;

# --------------------------------------------------------------------------
# an upload finds damage, and its heal gives up

{
	my $t = server();
	my $x = damaged_xorb($t);

	# a lock like that of the commit of a large shard that refers to the
	# xorb

	my $hold = held($t, 'SELECT id FROM xet.xorbs FOR KEY SHARE');

	is(put($t, $x)->{status}, 503, 'shard: the heal gives up');
	is(marked($t), 1, 'shard: the damage is recorded');

	released($hold);
	refused($t, $x, 'shard');
	is(put($t, $x)->{status}, 200, 'shard: healed');
	is(readable($t, $x), '200 200', 'shard: and readable');
	$t->check();
	$t->remove();
}

# --------------------------------------------------------------------------
# a client disconnects while its heal waits

{
	my $t = server();
	my $x = damaged_xorb($t);
	my $hold = held($t, 'SELECT id FROM xet.xorbs FOR KEY SHARE');
	my $c = begin($t, $x);

	ok(wait_for(10, sub { $t->pg_blocked() == 1 }), 'left: the heal waits');
	$c->close();
	ok(wait_for(10, sub { marked($t) == 1 }), 'left: damage is recorded');

	released($hold);
	ok(wait_for(10, sub { $t->pg_blocked() == 0 }), 'left: nobody waits');

	# the statement of the disconnected client may still have healed the
	# xorb

	put($t, $x);
	is(readable($t, $x), '200 200', 'left: readable in the end');
	$t->check();
	$t->remove();
}

# --------------------------------------------------------------------------
# a reader finds damage that is being healed, and then the heal gives up

{
	my $t = server();
	my $x = damaged_xorb($t);
	my $file = $t->sql("SELECT encode(hash, 'hex') FROM xet.files");
	my $hold = held($t, 'SELECT id FROM xet.files FOR NO KEY UPDATE');
	my $c = begin($t, $x);

	ok(wait_for(10, sub { $t->pg_blocked() == 1 }),
		'reader: the heal has the xorb, and waits for a file');
	is(readable($t, $x, 0), '500', 'reader: meets the damage');
	is(marked($t), 1, 'reader: recorded before the response');
	is($c->response('POST', timeout => 30)->{status}, 503,
		'reader: the heal gives up');

	released($hold);
	refused($t, $x, 'reader');
	$t->check();
	$t->remove();
}

# --------------------------------------------------------------------------
# requests for locked rows give up, and their sessions serve other requests

{
	my $t = server(Test::Xet::Token::repos());
	my $x = make_xorb(random_bytes(1, 200000), sizes => [ 50000 ]);

	is(put($t, $x, 'a/a')->{status}, 200, 'others: a xorb');

	my $hold = held($t, 'SELECT id FROM xet.xorbs FOR UPDATE');
	my @c = map { begin($t, $x, "b/$_") } 1 .. 8;

	ok(wait_for(10, sub { $t->pg_blocked() >= 4 }), 'others: four wait');

	my $y = make_xorb(random_bytes(2, 200000), sizes => [ 50000 ]);

	is(put($t, $y, 'other/repo')->{status}, 200,
		'others: an upload that has nothing to do with it');
	is(join(' ', map { $_->response('POST', timeout => 60)->{status} } @c),
		join(' ', (503) x 8), 'others: requests that waited get 503');

	released($hold);
	is(put($t, $x, "b/$_")->{status}, 200, "others: once more, $_")
		for 1, 8;
	$t->check();
	$t->remove();
}

# --------------------------------------------------------------------------
# a repo that is made private while many shards are being committed to it

{
	my $t = server(Test::Xet::Token::repos());
	my @xorbs = map { make_xorb(random_bytes($_, 60000),
		sizes => [ 20000 ]) } 1 .. 3;

	is(put($t, $_, 'a/a')->{status}, 200, 'private: a xorb') for @xorbs;
	is(put($t, $xorbs[0], 'b/b')->{status}, 200, 'private: one of others');

	$t->sql("SELECT xet.repo_set_public('a/a', true)");

	# a slow commit, which does not wait for any other session's lock

	$t->sql(<<'EOF');
CREATE TABLE public.slow (xorb bytea);
GRANT SELECT ON public.slow TO public;
CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WHILE EXISTS (SELECT FROM public.slow s
                    JOIN xet.xorbs x ON x.hash = s.xorb
                   WHERE x.id = NEW.xorb_id) LOOP
        PERFORM pg_sleep(0.02);
    END LOOP;
    RETURN NEW;
END;
$$;
CREATE TRIGGER slow BEFORE INSERT ON xet.file_xorbs
    FOR EACH ROW EXECUTE FUNCTION public.slow();
EOF
	$t->sql('INSERT INTO public.slow SELECT hash FROM xet.xorbs'
		. ' ORDER BY id LIMIT 1');

	my $first = begin_shard($t, $xorbs[0], 'a/a');

	ok(wait_for(10, sub {
		$t->sql("SELECT count(*) FROM pg_stat_activity"
			. " WHERE wait_event = 'PgSleep'") == 1
	}), 'private: a shard is being committed');

	my $admin = $t->pg_session();

	$admin->send("SELECT xet.repo_set_public('a/a', false)");
	ok(wait_for(10, sub { waiting($t) == 1 }),
		'private: the change waits for the shard');

	# this shard waits for the change, while the change waits for the first
	# shard.  A shard waits for only three seconds, and the check may come
	# later, so the test tries several times.

	my (@behind, $seen);

	for (1 .. 5) {
		push @behind, begin_shard($t, $xorbs[1], 'a/a');
		last if $seen = wait_for(4, sub { waiting($t) == 2 });
	}

	ok($seen, 'private: the next shard waits behind that');
	$t->sql('DELETE FROM public.slow');
	is($first->response('POST', timeout => 30)->{status}, 200,
		'private: the first one');
	$admin->wait();
	like($_->response('POST', timeout => 30)->{status},
		qr/^(?:200|503)$/, 'private: the next one') for @behind;
	is($t->sql("SELECT count(*) FROM xet.repo_files WHERE public_file"
		. ' IS NOT NULL'), 0, 'private: all of it is');
	is($t->sql("SELECT public FROM xet.repos WHERE name = 'a/a'"), 'f',
		'private: and the repo');

	# a long change of one repo does not delay other repos

	my $hold = held($t, "SELECT xet.repo_set_public('a/a', true)");
	my @c = map { begin_shard($t, $xorbs[2], 'a/a') } 1 .. 4;

	ok(wait_for(10, sub { $t->pg_blocked() == 4 }), 'changed: four wait');
	is(begin_shard($t, $xorbs[0], 'b/b')
		->response('POST', timeout => 30)->{status}, 200,
		'changed: a shard to another repo');
	is($_->response('POST', timeout => 30)->{status}, 503,
		'changed: the shards that waited get 503') for @c;
	released($hold);
	is(begin_shard($t, $xorbs[2], 'a/a')
		->response('POST', timeout => 30)->{status}, 200,
		'changed: once more');
	$t->check();
	$t->remove();
}

done_testing();

# --------------------------------------------------------------------------

sub server {
	my (@options) = @_;

	my $t = Test::Xet->new(workers => 1, log => 'info',
		pg_params => 'lock_timeout=3s', @options);

	$t->token_key() if @options;
	$t->run();
	$t->allow(qr/can't be read/, qr/lock timeout/, qr/does not match/,
		qr/not match its hash|other content/, qr/damaged/);

	return $t;
}

# Uploads a xorb with a file, and changes one of its stored bytes.

sub damaged_xorb {
	my ($t) = @_;

	my $x = send_xorb($t, random_bytes(3, 100_000), sizes => [ 8192 ]);

	register_file($t, [ [ $x ] ]);

	$t->flip_copy($t->copy($x->{hash}), 5000);

	return $x;
}

sub held {
	my ($t, $statement) = @_;

	my $session = $t->pg_session();

	$session->send($_), $session->wait() for 'BEGIN', $statement;

	return $session;
}

sub released {
	my ($session) = @_;

	$session->send('ROLLBACK');
	$session->wait();
}

sub begin {
	my ($t, $x, $repo) = @_;

	return $t->http_start('POST', "/api/v1/xorbs/default/$x->{hash}", {
		'Content-Length' => length($x->{bytes}),
		$repo ? %{ $t->auth('write', $repo) } : ()
	}, $x->{bytes});
}

sub put {
	my ($t, $x, $repo) = @_;

	my $c = begin($t, $x, $repo);
	my $r = $c->response('POST', timeout => 30);

	$c->close();

	return $r;
}

sub shard {
	my ($x, $start, $end) = @_;

	return make_shard({ files => [ { terms => [ { xorb => $x->{hash},
		start => $start, end => $end } ] } ],
		xorbs => [ { %$x, raw => '', bytes => '' } ] });
}

sub begin_shard {
	my ($t, $x, $repo) = @_;

	my $bytes = shard($x, 0, 3)->{bytes};

	return $t->http_start('POST', '/api/v1/shards', {
		'Content-Length' => length($bytes),
		%{ $t->auth('write', $repo) }
	}, $bytes);
}

sub waiting {
	my ($t) = @_;

	return $t->sql("SELECT count(*) FROM pg_locks"
		. " WHERE locktype = 'advisory' AND NOT granted");
}

sub marked {
	my ($t) = @_;

	return $t->sql('SELECT count(*) FROM xet.xorbs'
		. ' WHERE damaged_at IS NOT NULL');
}

# Checks that no new file can refer to the xorb before it is healed.

sub refused {
	my ($t, $x, $name) = @_;

	my $shard = shard($x, 0, 4);
	my $r = $t->post('/api/v1/shards', \$shard->{bytes});

	isnt($r->{status}, 200, "$name: no shard with it is acknowledged");
	is($t->get("/api/v1/files/$shard->{files}[0]{hash}")->{status}, 404,
		"$name: nor is its file there");
}

# Returns the status of the existing file and, unless $more is 0, of a new file.

sub readable {
	my ($t, $x, $more) = @_;

	my @files = register_of($x);

	if ($more // 1) {
		my $shard = shard($x, 0, 4);

		$t->post('/api/v1/shards', \$shard->{bytes});
		push @files, $shard->{files}[0]{hash};
	}

	return join(' ', map { $t->get("/api/v1/files/$_")->{status} } @files);
}

sub register_of {
	my ($x) = @_;

	return shard($x, 0, scalar @{ $x->{chunks} })->{files}[0]{hash};
}
