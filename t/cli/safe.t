#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet with hostile users and servers: links and pipes in a shared folder,
# control characters in messages, tokens in transit, closed outputs.  The test
# also checks the compiler's protection against buffer overruns.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ slurp spew /;

use File::Temp qw/ tempdir /;
use MIME::Base64 qw/ encode_base64 /;
use POSIX qw/ mkfifo /;

my $evil = '"code":"x\u001b[31m",'
	. '"message":"a\u009bb\u202ec\u0007\u000ad\u00e9"';

my $t = Test::Xet->new(workers => 1, log => 'info', timeout => 200,
	http => <<"EOC");
log_format who "\$server_port \$request_method \$uri \$http_authorization";
    access_log %%DIR%%/who.log who;
    xet_token_key %%DIR%%/token.key;

    server {
        listen %%PORT_8081%%;

        location /evil/ {
            return 403 '{"error":{$evil}}';
        }

        location /token {
            return 200 '{"accessToken":"a\\u001b[31mb","exp":1}';
        }

        location /away/ {
            return 307 http://127.0.0.1:%%PORT_8082%%/away/;
        }

        location /login/port {
            return 302 http://127.0.0.1:%%PORT_8082%%/got;
        }

        location /login/host {
            return 302 http://localhost:%%PORT_8082%%/got;
        }

        location /login/back {
            return 302 http://127.0.0.1:%%PORT_8082%%/back;
        }

        location /login/here {
            return 302 /login/there;
        }

        location /login/there {
            return 302 http://127.0.0.1:%%PORT_8081%%/got;
        }

        location /login/round {
            return 302 /login/round;
        }

        location /login/file {
            return 302 file:///etc/hostname;
        }

        location /got {
            return 200 '{"accessToken":"got","exp":1}';
        }

        location /api/ {
            xet_api;
            xet_auth off;
        }
    }

    server {
        listen %%PORT_8082%%;

        location / {
            return 404;
        }

        location /all/ {
            return 200 '<html>sign in</html>';
        }

        location /got {
            return 200 '{"accessToken":"other","exp":1}';
        }

        location /back {
            return 302 http://127.0.0.1:%%PORT_8081%%/got;
        }
    }

    server {
        listen %%PORT_8443%% ssl;
        ssl_certificate %%DIR%%/cert.pem;
        ssl_certificate_key %%DIR%%/cert.key;

        location /login/plain {
            return 302 http://127.0.0.1:%%PORT_8081%%/got;
        }

        location /api/ {
            return 302 http://127.0.0.1:%%PORT_8443%%/api/;
        }

        location /login/tls {
            return 302 /got;
        }

        location /got {
            return 200 '{"accessToken":"got","exp":1}';
        }
    }
EOC

$t->token_key();

my $cert = $t->dir() . '/cert';

system('openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1'
	. ' -addext subjectAltName=IP:127.0.0.1'
	. " -keyout $cert.key -out $cert.pem > /dev/null 2>&1") == 0 or die;

$t->run();

my $xet = Test::Xet::Cli::binary();
my $dir = tempdir(CLEANUP => 1);
my $data = random_bytes(3, 3000000);
my $hash = $t->upload($data)->{hash};
my $out = "$dir/out";

# --------------------------------------------------------------------------
# the name of a temporary file is already taken: by a link, a pipe, a folder, or
# a file that xet did not create

spew("$dir/victim", 'mine');

my %trap = (
	'a symbolic link' => sub { symlink("$dir/victim", $_[0]) },
	'a dangling link' => sub { symlink("$dir/new", $_[0]) },
	'a hard link' => sub { link("$dir/victim", $_[0]) },
	'a pipe' => sub { mkfifo($_[0], 0666) },
	'a folder' => sub { mkdir($_[0]) },
	'a file of the user' => sub { spew($_[0], 'also mine') },
	$> == 0 ? ('a file of somebody' => sub { spew($_[0], '');
		chown(12345, -1, $_[0]) }) : (),
);

for my $name (sort keys %trap) {
	for my $end (qw/ part state /) {
		my $at = "$out.xet-$end";

		$trap{$name}->($at) or die;

		my $r = xet($t, { timeout => 20 }, 'get', '-o', $out, $hash);

		is($r->{code}, 3, "$name for the $end: refused");
		like($r->{err}, qr/\Axet: \Q$at\E: .+\n\z/,
			"$name for the $end: reported");
		ok(-e $at || -l $at, "$name for the $end: left alone");
		is(slurp($at), 'also mine', 'with what is in it')
			if $name =~ /of the user/;

		-d $at && !-l $at ? rmdir($at) : unlink($at);
		is_deeply([ glob("$out*") ], [], 'and nothing else is there');
	}

	$trap{$name}->("$out.xet-part") or die;
	is(xet($t, { timeout => 20 }, 'get', '--range', '5-9', '-o', $out,
		$hash)->{code}, 0, "$name: bytes of a file do not meet it");
	is(slurp($out), substr($data, 5, 5), 'they are right');
	-d "$out.xet-part" && !-l "$out.xet-part" ? rmdir("$out.xet-part")
		: unlink("$out.xet-part");
	unlink($out);
}

is(slurp("$dir/victim"), 'mine', 'the victim has what it had');
ok(!-e "$dir/new", 'and no other was made');

symlink("$dir/victim", $out);
is(xet($t, 'get', '-o', $out, $hash)->{code}, 0, 'a link as the target');
ok(!-l $out, 'is replaced');
is(slurp("$dir/victim"), 'mine', 'not followed');
unlink($out);

mkfifo("$dir/$hash", 0666);
is(xet($t, { dir => $dir, timeout => 20 }, 'get', $hash)->{code}, 0,
	'a pipe at the name that nobody gave');
ok(-f "$dir/$hash", 'is replaced');
unlink("$dir/$hash");

SKIP: {
	skip 'not root', 2 if $> != 0;

	my $tmp = tempdir(CLEANUP => 1);

	mkfifo("$tmp/pipe", 0666);
	chown(12345, -1, "$tmp/pipe");
	chmod(01777, $tmp);

	open(my $reader, '+<', "$tmp/pipe") or die;
	my $r = xet($t, { timeout => 20 }, 'get', '-o', "$tmp/pipe", $hash);

	is($r->{code}, 3, 'a pipe of somebody in a sticky folder');
	like($r->{err}, qr/is another user's pipe/, 'reported');
}

# --------------------------------------------------------------------------
# a failed get leaves no files

is(xet($t, 'get', '-o', $out, 'ab' x 32)->{code}, 1, 'no such file');
is_deeply([ glob("$out*") ], [], 'nothing is left');

is(system("trap '' XFSZ; ulimit -f 200; XET_ENDPOINT=" . $t->url('/api')
	. " exec $xet get -o $out $hash 2> $dir/err") >> 8, 3, 'a full disk');
like(slurp("$dir/err"), qr/\Axet: \S+: File too large\n\z/, 'reported');
is_deeply([ glob("$out*") ], [], 'nothing is left');

# --------------------------------------------------------------------------
# control characters from servers and other users

my $r = xet($t, { endpoint => $t->url('/evil', 8081) }, 'get', '-o', $out,
	$hash);

is($r->{err} =~ s!^.*: 403 !!r, 'x\x1b[31m: a\xc2\x9bb\xe2\x80\xaec\x07\x0ad'
	. "\xc3\xa9\n", 'an error of a server');

my $name = "n\e[1m\xc2\x9b1m\xe2\x80\xae\x7f\xff\\\xc3\xa9";
my $shown = 'n\x1b[1m\xc2\x9b1m\xe2\x80\xae\x7f\xff\x5c' . "\xc3\xa9";

spew("$dir/$name", 'abc');

like(xet(undef, 'hash', "$dir/$name")->{out}, qr! \Q$dir/$shown\E\n\z!,
	'hash');
like(xet(undef, 'info', "$dir/$name")->{out}, qr!\A\Q$dir/$shown\E: file\n!,
	'info');
like(xet($t, 'put', "$dir/$name")->{out}, qr!\A\Q$dir/$shown\E\n!, 'put');

my $json = xet(undef, 'hash', '--json', "$dir/$name");

unlike($json->{out}, qr/[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae/,
	'hash --json');
like($json->{out}, qr/\\u009b1m\\u202e\\u007f.*\xc3\xa9"/,
	'characters of Unicode are escaped or stay');
is($json->{json}[0]{file}, "$dir/n\e[1m\x{9b}1m\x{202e}\x7f\x{fffd}\\\x{e9}",
	'and read back');

SKIP: {
	skip 'no script(1)', 1 unless -x '/usr/bin/script';

	my $line = "XET_ENDPOINT=" . $t->url('/api') . " $xet put --json"
		. ' $(printf "n\001\033[5m")';

	spew("$dir/n\001\e[5m", random_bytes(4, 9000000));
	unlike(scalar `cd $dir && script -qec '$line' /dev/null < /dev/null`,
		qr/\001|\e\[5/, 'the progress bar');
}

like(xet($t, 'token', '--url', $t->url('/token', 8081))->{err},
	qr/the response has no token$/, 'a token with control characters');

# --------------------------------------------------------------------------
# tokens; 0.0.0.0 reaches this machine, but is not accepted as a local name

my $far = 'http://0.0.0.0:' . $t->port(8081);

sub get {
	my ($url, @args) = @_;

	truncate($t->dir() . '/who.log', 0);

	my $result = xet($t, { endpoint => $url,
		env => { XET_TOKEN => 'secret' } }, 'get', '--retries', 0,
		@args, '-o', $out, 'ab' x 32);

	return ($result, who());
}

# Returns the worker's log.  A line is logged after its response, so this sends
# one more request and waits for the line of this request.

sub who {
	my $log;

	$t->get('/that-is-all');
	wait_for(20, sub {
		$log = slurp($t->dir() . '/who.log', 1) // '';
		$log =~ /that-is-all/
	});

	return $log =~ s/^.*that-is-all.*\n//mgr;
}

my $log;

($r, $log) = get("$far/api");
is($r->{code}, 4, 'a token without TLS');
like($r->{err}, qr/: refusing to send a token without TLS; --insecure-token /,
	'reported');
is($log, '', 'nothing is sent');

($r, $log) = get("$far/api", '--insecure-token');
like($log, qr/Bearer secret/, '--insecure-token');

for my $host (qw/ 127.0.0.1 localhost /) {
	($r, $log) = get("http://$host:" . $t->port(8081) . '/api');
	like($log, qr/Bearer secret/, "to $host");
}

for my $host ('127.0.0.1.example.invalid', 'localhost.example.invalid',
	'localhost@example.invalid', '127.0.0.1:80@example.invalid',
	'1.127.0.0')
{
	($r, $log) = get("http://$host/api");
	like($r->{err}, qr/without TLS/, "not to $host");
}

($r, $log) = get($t->url('/away', 8081));
like($log, qr/Bearer secret.*\n.*\n?/, 'a redirection');
unlike($log, qr/^@{[ $t->port(8082) ]} .*secret/m, 'does not get it');

{
	local $ENV{http_proxy} = "http://127.0.0.1:" . $t->port(8082);

	($r, $log) = get($t->url('/api', 8081));
	unlike($log, qr/^@{[ $t->port(8082) ]} .*secret/m,
		'nor does a proxy');
}

is(xet($t, { env => { XET_TOKEN => "a\r\nX: y" } }, 'get', '-o', $out,
	$hash)->{code}, 4, 'a token of two lines');

like(xet(undef, 'token', '--url', 'http://example.invalid/token')->{err},
	qr/without TLS/, 'nor is one fetched');

# --------------------------------------------------------------------------
# credentials from ~/.netrc or from a URL are sent only to their own origin, and
# only in the header

my $home = tempdir(CLEANUP => 1);
my $tls = 'https://127.0.0.1:' . $t->port(8443);

# Returns the received token, and which requests carried credentials.

sub login {
	my ($url, $netrc, @args) = @_;

	spew("$home/.netrc", $netrc);
	chmod(0600, "$home/.netrc");
	truncate($t->dir() . '/who.log', 0);

	my $result = xet(undef, { env => { HOME => $home } }, 'token',
		'--retries', 0, '--cacert', "$cert.pem", '--url', $url, @args);

	my %ports = map { $t->port($_) => $_ } 8081, 8082, 8443;

	return join(' ', $result->{code}, $result->{out} =~ s/\n//r, map {
		/^(\d+) GET (\S+) (.*)/ ? "$ports{$1}$2"
			. ($3 eq '-' ? '' : '!') : $_
	} split(/\n/, who()));
}

for my $netrc ("machine 127.0.0.1 login me password secret\n",
	"machine 127.0.0.1 login me password secret\n"
		. "machine localhost login me password other\n",
	"default login me password secret\n")
{
	my ($who) = $netrc =~ /^(.*?) login/;

	$who .= ', localhost' if $netrc =~ /localhost/;

	for ([ here => '0 got 8081/login/here! 8081/login/there! 8081/got!' ],
		[ port => '0 other 8081/login/port! 8082/got' ],
		[ host => '0 other 8081/login/host! 8082/got' ],
		[ back => '0 got 8081/login/back! 8082/back 8081/got' ],
		[ round => '4  ' . join(' ', ('8081/login/round!') x 6) ],
		[ file => '4  8081/login/file!' ])
	{
		my ($where, $want) = @$_;

		is(login($t->url("/login/$where", 8081), $netrc), $want,
			"netrc: $who: $where");
	}

	is(login("$tls/login/tls", $netrc), '0 got 8443/login/tls! 8443/got!',
		"netrc: $who: by TLS");
	is(login("$tls/login/plain", $netrc), '4  8443/login/plain!',
		"netrc: $who: not from TLS to none");
}

my $user = $t->url('/login/here', 8081) =~ s!//!//me:secret\@!r;

is(login($user, ''), '0 got 8081/login/here! 8081/login/there! 8081/got!',
	'a user in a URL');
is(login($user =~ s/here/port/r, ''), '0 other 8081/login/port! 8082/got',
	'a user in a URL, elsewhere');

# redirections keep the user name and password, with any characters

is(login($user =~ s/secret/s%40c%2Fr%3At%25/r, ''),
	'0 got 8081/login/here! 8081/login/there! 8081/got!',
	'a user with characters that URLs have encoded');
is_deeply([ slurp($t->dir() . '/who.log') =~ /(Basic \S+)/g ],
	[ ('Basic ' . encode_base64('me:s@c/r:t%', '')) x 3 ],
	'the password does not change on the way');

# credentials are sent under the same conditions as tokens: only over TLS, or to
# this machine

for my $who ('me:secret', 'me', ':secret') {
	for my $scheme ('http://', '') {
		my $at = "$far/api" =~ s!http://!$scheme$who\@!r;

		for my $more ([], [ '--insecure-token' ]) {
			truncate($t->dir() . '/who.log', 0);

			$r = xet($t, { endpoint => $at }, 'get', '--retries',
				0, @$more, '-o', $out, 'ab' x 32);

			my $log = who();

			if (@$more) {
				like($log, qr/ Basic /, "$scheme$who: @$more");

			} else {
				like($r->{err},
					qr/: refusing to send a password/,
					"$scheme$who without TLS");
				is($log, '', 'nothing is sent');
			}
		}
	}
}

for my $endpoint ("$far/api", $t->url('/evil', 8081), 'http://127.0.0.1:1',
	$t->url('/all', 8082))
{
	for my $who ('me:se&cret', 'me:@se&cret', 'me:secret@', ':secret',
		'me:s/ecret', 'me:s?ecret', 'me:s#ecret', 'secret')
	{
		my $at = $endpoint =~ s!//!//$who\@!r;

		for my $verb ([ 'get', '-o', $out, $hash ],
			[ 'put', "$dir/victim" ], [ 'info', $hash ])
		{
			$r = xet($t, { endpoint => $at, timeout => 30 },
				$verb->[0], '--retries', 0,
				@$verb[1 .. $#$verb]);

			isnt($r->{code}, 0, "$verb->[0] from $at");
			unlike($r->{out} . $r->{err}, qr/cret/,
				'the password is not shown');
		}
	}
}

like(xet($t, { endpoint => $t->url('/evil', 8081)
	=~ s!//!//me:secret\@!r }, 'get', '-o', $out, $hash)->{err},
	qr!^xet: server: \Q@{[ $t->url('/evil', 8081) ]}\E/v!,
	'the rest of the URL is');

# the same requests with a token

truncate($t->dir() . '/who.log', 0);
is(xet($t, { endpoint => "$tls/api", env => { XET_TOKEN => 'secret' } },
	'get', '--retries', 0, '--cacert', "$cert.pem", '-o', $out, $hash)
	->{code}, 4, 'from TLS to none with a token');
is((grep { !/^@{[ $t->port(8443) ]} / }
	split(/\n/, slurp($t->dir() . '/who.log'))), 0, 'asks nobody else');

# --------------------------------------------------------------------------
# a reader that closes its end of a pipe

SKIP: {
	skip 'no bash', 6 unless -x '/bin/bash';

	my $endpoint = 'XET_ENDPOINT=' . $t->url('/api');

	for my $args ("get -o - $hash", "hash --json $dir/victim",
		'help')
	{
		is(`bash -c '{ sleep 0.2; $endpoint $xet $args; } 2> $dir/err \\
			| true; echo \${PIPESTATUS[0]}'`, "141\n",
			"nobody reads: $args");
		is(slurp("$dir/err"), '', 'which is no fault');
	}
}

# --------------------------------------------------------------------------
# streams that are closed at the start are neither written nor read

for ([ "get -o - $hash >&-", 3 ], [ "get -o - --range 0-99 $hash >&-", 3 ],
	[ "get --json -o $out $hash >&-", 3 ], [ "get -o $out $hash >&-", 0 ],
	[ "get -o - $hash <&- >&- 2>&-", 3 ], [ "verify --json $hash >&-", 3 ],
	[ "put --json $dir/victim >&-", 3 ], [ "put - <&-", 3 ],
	[ "hash $dir/victim >&-", 3 ], [ "hash - <&-", 3 ],
	[ "get -o $out $hash <&- >&- 2>&-", 0 ], [ "help >&-", 3 ])
{
	my ($args, $code) = @$_;

	unlink($out);

	my $got = system("exec 2>> $dir/err; XET_ENDPOINT="
		. $t->url("/api") . " timeout 60 $xet $args") >> 8;

	is($got, $code, "closed: $args" =~ s/\S*\///gr);
	ok(slurp($out) eq $data, 'what is written is all of it')
		if $args =~ /-o \Q$out\E/;
}

# --------------------------------------------------------------------------

like(xet(undef, '--version')->{out}, qr/\Axet \d+\.\d+\.\d+\n\z/,
	'--version');

SKIP: {
	skip 'no readelf, or another build', 6
		if $ENV{XET_TEST_CLI} || !-x '/usr/bin/readelf';

	my $elf = `readelf -hldW --dyn-syms $xet`;

	like($elf, qr/Type: +DYN /, 'at no fixed address');
	like($elf, qr/GNU_RELRO/, 'relocations are read-only');
	like($elf, qr/FLAGS_1.*NOW/, 'all of them');
	like($elf, qr/GNU_STACK.* RW /, 'no code on the stack');
	like($elf, qr/__stack_chk_fail/, 'canaries');
	like($elf, qr/__memcpy_chk/, 'the library checks lengths');
}

$t->allow(qr/./);
$t->done();
