package Test::Xet;

# Copyright (C) the ngx_http_xet_module authors

# Runs a private nginx with the module and a private PostgreSQL for one test.
#
#     use Test::More;
#     use Test::Xet;
#
#     my $t = Test::Xet->new();
#
#     $t->run();
#
#     my $file = $t->upload(mix(1, 300000));
#     my $d = $t->download($file->{hash}, size => 300000);
#
#     is_deeply($d->{errors}, [], 'rules');
#     is(length($d->{data}), 300000, 'length');
#
#     $t->done();
#
# done() stops all processes, runs the checks common to all tests (exit codes,
# log, sanitizers, temporary files, descriptors) and ends the plan.
#
# Environment:
#
#     XET_BUILD          build folder, default build
#     XET_TEST_NGINX     nginx binary, default /usr/sbin/nginx
#     XET_TEST_MODULE    module, empty if it is linked into nginx; default
#                        $XET_BUILD/nginx/ngx_http_xet_module.so
#     XET_TEST_USER      user of the workers if the test runs as root; default
#                        nobody
#     XET_TEST_PG_BIN    folder of initdb, postgres, psql
#     XET_TEST_TEMPLATE  folder of template clusters, default
#                        $XET_BUILD/t-template
#     XET_TEST_STORE     s3: the store of each test is a bucket
#     XET_TEST_S3        server that Test::Xet::S3 starts, default moto
#     XET_TEST_DATA      presigned: clients read data from the bucket itself
#     XET_TEST_PATIENCE  factor for all timeouts; by default it depends on the
#                        system load
#     XET_TEST_LEAVE     keeps the folder of the test
#     XET_TEST_CATLOG    prints the error log after the test

use warnings;
use strict;

use parent qw/
	Exporter Test::Xet::Copies Test::Xet::State Test::Xet::Token
	Test::Xet::Upload
/;

use File::Path qw/ make_path remove_tree /;
use File::Temp qw/ tempdir /;
use Test::More ();

use Test::Xet::Bytes;
use Test::Xet::Client ();
use Test::Xet::HTTP;
use Test::Xet::Nginx;
use Test::Xet::Postgres;
use Test::Xet::Stall;
use Test::Xet::Process qw/
	free_port patience root run_command slurp spew wait_for
/;
use Test::Xet::Secrets;

our @EXPORT = (@Test::Xet::Bytes::EXPORT, qw/ wait_for /);

delete @ENV{ grep { /^PG/ } keys %ENV };

my @live;

# Creates a test, which run() starts.  Options:
#
#     conf        complete nginx.conf instead of the default, with %%...%%
#     main, http, server  lines to add at these levels
#     locations   lines that replace conf/xet_location.conf
#     directives  { xet_... => value } at http level; undef omits a directive
#     workers     number of workers, 1
#     connections  maximum number of connections per worker, 512
#     threads     number of threads, 4
#     log         level of the error log: debug (default), info
#     xet         0: no module and no xet_ directives
#     pg          0: no PostgreSQL
#     durable     1: PostgreSQL with fsync
#     pg_conf     lines for postgresql.conf
#     allow       [ regexes ] of permitted lines of the error log
#     timeout     seconds for the whole test, 600
#     stalls      1: the test can make system calls of nginx hang, see
#                 Test::Xet::Stall
#     beside      Test::Xet object whose store and database are shared
#     machine     machine of Test::Xet::Net, where nginx runs
#     net         Test::Xet::Net whose machines can reach PostgreSQL
#     folder      path of the store, if this machine mounts it elsewhere
#
# In conf and the additions:
#
#     %%MAIN%% %%HTTP%% %%XET%% %%SERVER%% %%LOCATIONS%%  default contents
#     %%PORT_8080%%  a free port; the same number always gives the same port
#     %%ADDR%%  127.0.0.1, or the address of the machine
#     %%DIR%% %%ROOT%% %%STORE%% %%CONNINFO%% %%URL_KEY%% %%DEDUP_KEY%%
#     %%CONNECTIONS%%
#     %%CAS%%  the locations /cas/, the target of a Hub's tokens, and /xorbs/
#     %%DATA%%       xet_data for the store of the test, in a location /xorbs/
#     %%DATA_ALIAS%%  the same, in a location with any path that ends in xorbs/

sub new {
	my ($class, %o) = @_;

	my $self = bless {
		o => \%o, ports => {}, allow => $o{allow} || [], owner => $$,
		beside => delete $o{beside}
	}, $class;

	$self->{dir} = tempdir('xt-XXXXXX', DIR => '/tmp');
	chmod(0755, $self->{dir});

	push @live, $self;

	set_signals();
	alarm(patience($o{timeout} || 600));

	$self->{stall} = Test::Xet::Stall->new(dir => $self->{dir})
		if $o{stalls};
	$self->{nginx} = Test::Xet::Nginx->new(dir => $self->{dir},
		env => $self->{stall} && $self->{stall}->env(),
		prefix => $o{machine} && [ $o{machine}->command() ]);

	$self->make_store($o{pg} // $o{xet} // 1) unless $self->{beside};

	# any key works; these are not secrets

	$self->write_file('url.key', 'url:k1:' . '5e' x 32 . "\n");
	$self->write_file('dedup.key', 'dedup:' . 'd0' x 32 . "\n");
	chmod(0600, "$self->{dir}/$_") for qw/ url.key dedup.key /;

	$self->write_conf($o{conf});

	return $self;
}

sub make_store {
	my ($self, $pg) = @_;

	my $o = $self->{o};

	$self->{pg} = Test::Xet::Postgres->new(dir => "$self->{dir}/pg",
		durable => $o->{durable}, conf => $o->{pg_conf},
		net => $o->{net}) if $pg;

	mkdir($self->store());

	my $s3 = $o->{s3} // Test::Xet::Copies::in_bucket();

	if ($s3) {
		require Test::Xet::S3;

		$self->{s3} = ref($s3) ? $s3
			: Test::Xet::S3->new(dir => "$self->{dir}/s3");
		mkdir("$self->{dir}/s3") unless -d "$self->{dir}/s3";
	}

	if (my ($user) = Test::Xet::Nginx::user()) {
		chown((getpwnam($user))[2, 3], $self->store());
	}

	$self->give_credentials() if $s3;
}

# Makes the credentials file readable for the workers, which read it again when
# the store denies a request.

sub give_credentials {
	my ($self) = @_;

	my ($user) = Test::Xet::Nginx::user() or return;
	my $file = $self->{s3}->credentials();

	chmod(0755, $file =~ s!/[^/]*\z!!r);
	chown((getpwnam($user))[2, 3], $file);
}

# Returns the value of xet_store.

sub conf_store {
	my ($self) = @_;

	return $self->{beside}->conf_store()
		if $self->{beside} && !defined $self->{o}{folder};

	my $s3 = $self->{s3} or return $self->store();

	return join(' ', $s3->url() . '/' . $self->PREFIX() =~ s!/\z!!r,
		'endpoint=' . ($self->{o}{s3_endpoint} // $s3->endpoint()),
		'credentials=' . $s3->credentials(), 'region=' . $s3->region(),
		'path_style temp_path=' . $self->temp_path(),
		$self->{o}{s3_params} // 'timeout=' . int(patience(10)) . 's');
}

sub s3 { return $_[0]->{beside} ? $_[0]->{beside}->s3() : $_[0]->{s3} }
sub temp_path { return "$_[0]->{dir}/xet_temp" }

sub set_signals {
	$SIG{ALRM} = sub {
		Test::More::diag('the test takes too long');
		exit(1);
	};

	$SIG{$_} = sub { exit(1) } for qw/ INT TERM HUP /;
	$SIG{PIPE} = 'IGNORE';
}

# --------------------------------------------------------------------------
# configuration

sub dir { return $_[0]->{dir} }
sub nginx { return $_[0]->{nginx} }
sub pg { return $_[0]->{pg} }
sub stall { return $_[0]->{stall} }

sub store {
	my ($self) = @_;

	return $self->{o}{folder} // ($self->{beside}
		? $self->{beside}->store() : "$self->{dir}/store");
}

# Returns the paths of all copies of a xorb.

sub xorb_files {
	my ($self, $hash) = @_;

	my @files = glob($self->store() . '/xorbs/default/'
		. substr($hash, 0, 2) . "/$hash*");

	return @files;
}

# Returns the path of the only copy of a xorb; if there is none, the path with
# the plain hash.  A background job removes a replaced copy after the response,
# so there may be two copies for a moment.

sub xorb_file {
	my ($self, $hash) = @_;

	my @files;

	wait_for(20, sub {
		@files = $self->xorb_files($hash);
		return @files < 2;
	}) or die "@files\n";

	return $files[0] // $self->store() . '/xorbs/default/'
		. substr($hash, 0, 2) . "/$hash";
}

sub conninfo {
	my ($self) = @_;

	return $self->{beside}->conninfo() if $self->{beside};
	return $self->{pg} ? $self->{pg}->conninfo() : '';
}

sub addr {
	my ($self) = @_;

	return $self->{o}{machine} ? $self->{o}{machine}->addr() : '127.0.0.1';
}

# Returns the port for a number in the configuration; 8080 by default.

sub port {
	my ($self, $n) = @_;

	return $self->{ports}{$n // 8080} ||= free_port();
}

sub url {
	my ($self, $path, $n) = @_;

	return 'http://' . $self->addr() . ':' . $self->port($n) . $path;
}

sub write_file {
	my ($self, $name, $content) = @_;

	my ($parent) = "$self->{dir}/$name" =~ m!^(.*)/!;
	make_path($parent);
	spew("$self->{dir}/$name", $content);

	return "$self->{dir}/$name";
}

sub read_file {
	my ($self, $name) = @_;

	return slurp("$self->{dir}/$name");
}

# Sets another configuration for the next run() or reload(); options of new()
# replace the earlier ones.

sub write_conf {
	my ($self, $text, %o) = @_;

	$self->{o} = { %{ $self->{o} }, %o };
	$self->{nginx}->write_conf($self->expand($text // default_conf()));
}

# Runs nginx -t with a configuration; returns (valid, output).  With weak => 1
# nginx runs as root without the right to override file permissions.

sub config_test {
	my ($self, $text, %o) = @_;

	local $self->{o} = { %{ $self->{o} }, %o };

	return $self->{nginx}->config_test(
		$self->expand($text // default_conf()), weak => $o{weak});
}

sub default_conf {
	return <<'EOF';
%%MAIN%%

events {
    worker_connections  %%CONNECTIONS%%;
}

http {
    %%HTTP%%
    %%XET%%

    server {
        listen       %%ADDR%%:%%PORT_8080%%;
        server_name  localhost;
        root         %%STORE%%;

        %%SERVER%%
        %%LOCATIONS%%
    }
}
EOF
}

# Returns conf/nginx.conf with the paths and ports of the test, as docker/run.sh
# writes it, for write_conf().  It includes the xet_location.conf that
# conf_locations() writes to the folder of the test.

sub shipped_conf {
	my ($self) = @_;

	my $module = Test::Xet::Nginx::module();
	my $user = join(' ', Test::Xet::Nginx::user());
	my $text = slurp(root() . '/conf/nginx.conf');

	my %replaced = (
		'listen 127.0.0.1:8080;' => 'listen 127.0.0.1:%%PORT_8080%%;',
		'http://127.0.0.1:8080' => 'http://127.0.0.1:%%PORT_8080%%',
		'load_module /usr/lib/nginx/modules/ngx_http_xet_module.so;'
			=> $module eq '' ? '' : "load_module $module;",
		'xet_store %%STORE%%;' => 'xet_store ' . $self->conf_store()
			. ';',
		'/run/xet/postgresql' =>
			($self->{beside} // $self)->pg()->socket_dir(),
		'/run/nginx.pid' => '%%DIR%%/nginx.pid',
		'/var/log/nginx' => '%%DIR%%', '/var/lib/xet' => '%%STORE%%',
		'/etc/nginx/xet' => '%%DIR%%',
		'user www-data;' => $user ? "user $user;" : '',
		'worker_processes auto;'
			=> 'worker_processes 1; daemon off;',
		"http {\n" => "http {\n" . join('', map {
			"${_}_temp_path %%DIR%%/temp/$_;\n" }
			qw/ client_body proxy fastcgi uwsgi scgi /)
	);

	for my $old (sort keys %replaced) {
		$text =~ s/\Q$old\E/$replaced{$old}/g
			or die "conf/nginx.conf has no \"$old\"\n";
	}

	$self->conf_locations();
	$self->write_file('xet_hub.conf', slurp(root() . '/conf/xet_hub.conf')
		=~ s!/usr/share/xet/web/!$self->{dir}/web/!r);
	run_command([ 'sh', root() . '/docker/web.sh', "$self->{dir}/web" ]);
	$self->token_key();

	return $text;
}

sub expand {
	my ($self, $text) = @_;

	my %blocks = (
		MAIN => \&conf_main, HTTP => \&conf_http, XET => \&conf_xet,
		SERVER => sub { $_[0]->{o}{server} // '' },
		LOCATIONS => \&conf_locations
	);

	my %values = (
		ADDR => $self->addr(),
		DIR => $self->{dir}, ROOT => root(), STORE => $self->store(),
		CONNINFO => $self->conninfo(),
		URL_KEY => "$self->{dir}/url.key",
		DEDUP_KEY => "$self->{dir}/dedup.key",
		CONNECTIONS => $self->{o}{connections} || 512
	);

	$text =~ s/%%(MAIN|HTTP|XET|SERVER|LOCATIONS)%%/$blocks{$1}->($self)/ge;
	$text =~ s/%%CAS%%/Test::Xet::Token::cas()/ge;
	$text =~ s/%%DATA(_ALIAS)?%%/$self->conf_data($1)/ge;
	$text =~ s/%%PORT_(\d+)%%/$self->port($1)/ge;
	$text =~ s/%%(\w+)%%/$values{$1} \/\/ die "unknown %%$1%%\n"/ge;

	return $text;
}

sub conf_main {
	my ($self) = @_;

	my $o = $self->{o};
	my $xet = $o->{xet} // 1;
	my $module = $xet ? Test::Xet::Nginx::module() : '';
	my @user = Test::Xet::Nginx::user();

	return join("\n", 'daemon off;',
		@user ? "user @user;" : (),
		'worker_processes ' . ($o->{workers} || 1) . ';',
		"pid $self->{dir}/nginx.pid;",
		"error_log $self->{dir}/error.log " . ($o->{log} || 'debug')
			. ';',
		$module ne '' ? "load_module $module;" : (),
		$xet ? 'thread_pool xet threads=' . ($o->{threads} || 4) . ';'
			: (),
		$o->{main} // '');
}

sub conf_http {
	my ($self) = @_;

	my $temp = "$self->{dir}/temp";
	my $http = $self->{o}{http} // '';

	return join("\n    ", "access_log $self->{dir}/access.log;",
		$self->conf_bucket(),
		$http =~ /large_client_header_buffers/ ? ()
			: 'large_client_header_buffers 8 72k;',
		map({ "${_}_temp_path $temp/$_;" } qw/ client_body proxy
			fastcgi uwsgi scgi /), $http);
}

# Returns the lines that conf/xet_bucket.conf needs at the http level.

sub conf_bucket {
	my ($self) = @_;

	my $s3 = $self->s3() or return ();

	return ('upstream xet_bucket { server ' . ($self->{o}{s3_server}
			// $s3->host()) . '; keepalive 16; }',
		"proxy_cache_path $self->{dir}/cache levels=1:2 "
			. 'keys_zone=xet_bucket:1m use_temp_path=off;');
}

sub conf_xet {
	my ($self) = @_;

	return '' unless $self->{o}{xet} // 1;

	my %directives = (
		xet_store => $self->conf_store(),
		xet_postgres => '"' . $self->conninfo() . '" '
			. ($self->{o}{pg_params} // ''),
		xet_url_base => $self->url(''),
		xet_url_key => "$self->{dir}/url.key",
		xet_dedup_key => "$self->{dir}/dedup.key",
		xet_thread_pool => 'xet',
		xet_data_mode => $self->s3() ? $ENV{XET_TEST_DATA} : undef,
		%{ $self->{o}{directives} || {} }
	);

	return join("\n    ", map { "$_ $directives{$_};" }
		grep { defined $directives{$_} } sort keys %directives);
}

# Returns the locations of conf/xet_location.conf, with the store of the test.

sub conf_locations {
	my ($self) = @_;

	return $self->{o}{locations} if defined $self->{o}{locations};
	return '' unless $self->{o}{xet} // 1;

	my $text = slurp(root() . '/conf/xet_location.conf');
	my $store = $self->store();

	$text =~ s!/var/lib/xet\b!$store!g
		or die "no store in conf/xet_location.conf\n";

	$text = $self->write_file('xet_location.conf', $text);

	my $bucket = $self->s3() ? 'include ' . root()
		. '/conf/xet_bucket.conf;' : '';

	return "xet_auth off; include $text; $bucket";
}

# Returns the contents of a data location.  If the store is a bucket, these are
# the contents of the location in conf/xet_bucket.conf, without its error
# handling: the test handles errors.

sub conf_data {
	my ($self, $alias) = @_;

	my $store = $self->store();

	return 'xet_data; ' . ($alias ? "alias $store/xorbs/;"
		: "root $store;") unless $self->s3();

	my ($lines) = slurp(root() . '/conf/xet_bucket.conf')
		=~ m!^location ~ \^/xorbs/ \{\n(.*?)^\}!ms
		or die "no location in conf/xet_bucket.conf\n";

	$lines =~ s/^\s*(?:recursive_error_pages|error_page|send_timeout)
		[^;]*;\n//xmg;

	return $lines;
}

# Returns options for two workers that share the connections to port 8081, and
# for a log that shows which worker has responded.

sub two_workers {
	return (workers => 2,
		server => 'listen 127.0.0.1:%%PORT_8081%% reuseport;',
		http => "log_format pid '\$pid \$status \$request';\n"
			. '    access_log %%DIR%%/pid.log pid;');
}

# --------------------------------------------------------------------------
# nginx and PostgreSQL

sub run {
	my ($self) = @_;

	$self->{pg}->start() if $self->{pg} && !$self->{pg}->pid();
	$self->{nginx}->run();

	return $self;
}

# Sets the creation time of the store in the database to the distant past.
# Otherwise files that a test ages by utime() would be older than the store, and
# the server ignores such files.

sub let_age {
	my ($self) = @_;

	wait_for(20, sub {
		$self->sql("UPDATE xet.store SET since = '-infinity'"
			. ' RETURNING 1')
	}) or die "the database has no store\n";
}

sub stop { my $self = shift; return $self->{nginx}->stop(@_) }
sub reload { my $self = shift; return $self->{nginx}->reload(@_) }
sub kill_worker { my $self = shift; return $self->{nginx}->kill_worker(@_) }
sub worker_pids { my $self = shift; return $self->{nginx}->worker_pids(@_) }
sub log { my $self = shift; return $self->{nginx}->log(@_) }
sub wait_log { my $self = shift; return $self->{nginx}->wait_log(@_) }

sub log_size {
	return -s "$_[0]->{dir}/error.log" || 0;
}

sub sql { my $self = shift; return $self->{pg}->sql(@_) }
sub rows { return $_[0]->{pg}->rows() }
sub pg_start { return $_[0]->{pg}->start() }
sub pg_stop { my $self = shift; return $self->{pg}->stop(@_) }
sub pg_restart { my $self = shift; return $self->{pg}->restart(@_) }
sub pg_freeze { my $self = shift; return $self->{pg}->freeze(@_) }
sub pg_thaw { return $_[0]->{pg}->thaw() }
sub pg_lock { my $self = shift; return $self->{pg}->lock(@_) }
sub pg_session { my $self = shift; return $self->{pg}->session(@_) }
sub pg_backends { my $self = shift; return $self->{pg}->backends(@_) }
sub pg_blocked { my $self = shift; return $self->{pg}->blocked(@_) }
sub pg_terminate { my $self = shift; return $self->{pg}->terminate(@_) }

# --------------------------------------------------------------------------
# requests

# Sends a request.  Takes the options of Test::Xet::HTTP, and "port", a port
# number of the configuration.

sub http {
	my ($self, $method, $uri, $headers, $body, %o) = @_;

	return Test::Xet::HTTP->request($self->port(delete $o{port}),
		$method, $uri, $headers, $body, addr => $self->addr(), %o);
}

sub get {
	my ($self, $uri, $headers, %o) = @_;

	return $self->http('GET', $uri, $headers, undef, %o);
}

sub head {
	my ($self, $uri, $headers, %o) = @_;

	return $self->http('HEAD', $uri, $headers, undef, %o);
}

sub post {
	my ($self, $uri, $body, $headers, %o) = @_;

	return $self->http('POST', $uri, $headers, $body, %o);
}

sub put {
	my ($self, $uri, $body, $headers, %o) = @_;

	return $self->http('PUT', $uri, $headers, $body, %o);
}

# Opens a connection for requests that are sent in pieces.

sub connect {
	my ($self, %o) = @_;

	return Test::Xet::HTTP->new($self->port(delete $o{port}),
		addr => $self->addr(), %o);
}

# Sends the head of a request, and the given part of its body.

sub http_start {
	my ($self, $method, $uri, $headers, $part, %o) = @_;

	my $c = $self->connect(%o);

	$c->start($method, $uri, $headers, %o);
	$c->send($part) if defined $part;

	return $c;
}

sub download { return Test::Xet::Client::download(@_) }
sub reconstruct { return Test::Xet::Client::reconstruct(@_) }

# --------------------------------------------------------------------------
# shutdown and final checks

# Allows error log lines that match one of the regexes.

sub allow {
	my ($self, @regexes) = @_;

	push @{ $self->{allow} }, @regexes;
}

# Stops all processes and runs the final checks.  done() calls this method.

sub check {
	my ($self) = @_;

	return if $self->{checked}++;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $nginx = $self->{nginx};

	$self->check_fds();
	$self->check_files();

	$self->{pg}->thaw() if $self->{pg};
	$nginx->stop();

	my @bad = grep { $_ ne '0' } @{ $nginx->{exits} };
	Test::More::ok(!@bad, 'nginx has exited cleanly')
		or Test::More::diag(join(', ', @bad));

	my @lines = $nginx->complaints(@{ $self->{allow} });
	Test::More::ok(!@lines, 'no alerts in the error log')
		or Test::More::diag(join("\n", splice(@lines, 0, 10)));

	my @shown = map { secrets_in($_) } secret_logs(
		slurp("$self->{dir}/nginx.conf", 1) // '');
	Test::More::ok(!@shown, 'no secret in a log')
		or Test::More::diag(join('', splice(@shown, 0, 10)));

	my $report = $nginx->sanitizer();
	Test::More::ok(!defined $report, 'no sanitizer report')
		or Test::More::diag($report);

	my @files = $self->temp_files();
	Test::More::is("@files", '', 'no temporary files left');

	$self->{pg}->kill() if $self->{pg};

	$self->show_log() if $ENV{XET_TEST_CATLOG}
		|| !Test::More->builder()->is_passing();
	$self->remove();
}

# Prints the last 40 lines of the error log, without debug lines; the complete
# log if XET_TEST_CATLOG is set.

sub show_log {
	my ($self) = @_;

	my @lines = grep {
		$ENV{XET_TEST_CATLOG} || m!^\d{4}/! && !/\[debug\]/
	} split(/\n/, $self->log());

	@lines = splice(@lines, -40) if !$ENV{XET_TEST_CATLOG} && @lines > 40;
	Test::More::diag($self->{nginx}->output()
		. join("\n", 'error log:', @lines));
}

sub done {
	my ($self) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	# first stop the servers that use another server's store and database

	$_->check() for grep { defined && $_->{owner} == $$ } reverse(@live);
	alarm(0);

	Test::More::done_testing();
}

sub remove {
	my ($self) = @_;

	return if $self->{removed}++;

	if ($ENV{XET_TEST_LEAVE}) {
		Test::More::diag("left in $self->{dir}");
		return;
	}

	remove_tree($self->{dir}, { safe => 0, error => \my $errors });
}

# Cleans up after a test that died or was interrupted.

END {
	my $code = $?;

	for my $self (grep { $_->{owner} == $$ } @live) {
		next if $self->{checked};

		eval {
			$self->{nginx}->kill();
			$self->{pg}->kill() if $self->{pg};
			$self->show_log();
			$self->remove();
		};
	}

	$? = $code;
}

1;
